#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/status.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/load.h"
#include "worker/data/tokenizer.h"

namespace atl {
namespace {

class FileTokenizer final : public Tokenizer {
 public:
  explicit FileTokenizer(std::unique_ptr<BpeTokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::string_view name() const override { return tokenizer_->name(); }
  uint32_t vocabulary() const override { return tokenizer_->vocabulary(); }
  std::optional<TokenId> end_of_text() const override { return tokenizer_->end_of_text(); }

  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    EncodePart(text, text.size(), tokens);
  }
  size_t LastCut(std::string_view text) const override { return tokenizer_->LastCut(text); }
  void EncodePart(std::string_view text, size_t end, std::vector<TokenId>& tokens) const override {
    tokens.clear();
    std::unique_ptr<BpeEncoder> encoder = Borrow();
    encoder->EncodePart(text, end, tokens);
    const MutexLock lock(&mutex_);
    idle_.push_back(std::move(encoder));
  }
  std::string Decode(std::span<const TokenId> tokens) const override { return tokenizer_->Decode(tokens); }

 private:
  std::unique_ptr<BpeEncoder> Borrow() const {
    {
      const MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<BpeEncoder> encoder = std::move(idle_.back());
        idle_.pop_back();
        return encoder;
      }
    }
    return std::make_unique<BpeEncoder>(*tokenizer_);
  }

  const std::unique_ptr<BpeTokenizer> tokenizer_;
  mutable Mutex mutex_;
  // As many as there were calls at the same time.
  mutable std::vector<std::unique_ptr<BpeEncoder>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeFileTokenizer(const std::string& path,
                                                             const std::string& pattern) {
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<BpeTokenizer> tokenizer, LoadTokenizer(path, pattern));
  return std::make_unique<FileTokenizer>(std::move(tokenizer));
}

}  // namespace atl
