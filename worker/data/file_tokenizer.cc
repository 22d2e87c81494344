#include <mutex>
#include <utility>

#include "common/status.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/load.h"
#include "worker/data/tokenizer.h"

namespace atl {
namespace {

class FileTokenizer final : public Tokenizer {
 public:
  explicit FileTokenizer(std::unique_ptr<BpeTokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), encoder_(*tokenizer_) {}

  std::string_view name() const override { return tokenizer_->name(); }
  uint32_t vocabulary() const override { return tokenizer_->vocabulary(); }

  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    tokens.clear();
    const std::lock_guard lock(mutex_);
    encoder_.Encode(text, tokens);
  }
  size_t EncodePrefix(std::string_view text, std::vector<TokenId>& tokens) const override {
    tokens.clear();
    const std::lock_guard lock(mutex_);
    return encoder_.EncodePrefix(text, tokens);
  }
  std::string Decode(std::span<const TokenId> tokens) const override { return tokenizer_->Decode(tokens); }

 private:
  const std::unique_ptr<BpeTokenizer> tokenizer_;
  mutable std::mutex mutex_;
  mutable BpeEncoder encoder_;  // guarded by mutex_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeFileTokenizer(const std::string& path,
                                                             const std::string& pattern) {
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<BpeTokenizer> tokenizer, LoadTokenizer(path, pattern));
  return std::make_unique<FileTokenizer>(std::move(tokenizer));
}

}  // namespace atl
