#include "worker/data/tokenize/text_items.h"

#include <utility>

namespace atl {

std::optional<TextItem> TextItems::Next() {
  if (failed_ || input_ == inputs_.size()) return std::nullopt;
  TextItem item{.input = input_, .position = before_};
  const auto fail = [&](const absl::Status& status) {
    failed_ = true;
    item.status = status;
    return std::move(item);
  };
  if (reader_ == nullptr) {
    auto opened = format_ == TextFormat::kJsonLines ? OpenJsonLines(inputs_[input_])
                                                    : OpenPlainText(inputs_[input_], options_);
    if (!opened.ok()) return fail(opened.status());
    reader_ = *std::move(opened);
  }
  const absl::StatusOr<bool> more = reader_->Next(item.batch);
  if (!more.ok()) return fail(more.status());
  item.position = before_ + reader_->position();
  if (!*more) {
    item.batch = TextBatch();
    item.ends_input = true;
    before_ = item.position;
    reader_.reset();
    ++input_;
  }
  return item;
}

}  // namespace atl
