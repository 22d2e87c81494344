#include "protos/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

/// Our own exception: the text is valid YAML, but a configuration must not contain it.
class Rejection final : public YAML::ParserException {
 public:
  using ParserException::ParserException;
};

/// A hint that yaml-cpp does not give: it reads a tab at the beginning of a line as text.
std::string_view TabHint(std::string_view text, int line) {
  for (int i = 0; i < line && text.find('\n') != std::string_view::npos; ++i)
    text.remove_prefix(text.find('\n') + 1);
  const size_t indent = text.find_first_not_of(' ');
  return indent != std::string_view::npos && text[indent] == '\t'
             ? "; the line begins with a tab, but YAML is indented with spaces"
             : "";
}

// Builds the tree from yaml-cpp's events. Rejections are thrown as a subclass of yaml-cpp's exception, which
// carries the position.
class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RejectAnchor(mark, anchor);
    Add(mark, {YamlNode::Kind::kNull, Line(mark), "", false, {}, {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Rejection(mark, "aliases (*name) are not allowed");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RejectAnchor(mark, anchor);
    const bool quoted = tag == "!";
    if (!quoted) RejectTag(mark, tag);
    Add(mark, {YamlNode::Kind::kScalar, Line(mark), value, quoted, {}, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<YamlEntry> pending;  // a key whose value has not been read yet
  };

  static int Line(const YAML::Mark& mark) { return mark.line + 1; }

  static void RejectAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) throw Rejection(mark, "anchors (&name) are not allowed");
  }
  static void RejectTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?") throw Rejection(mark, "tags (!name) are not allowed");
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    RejectAnchor(mark, anchor);
    RejectTag(mark, tag);
    if (frames_.size() >= kMaxYamlDepth) {
      throw Rejection(mark, absl::StrCat("nested deeper than ", kMaxYamlDepth, " levels"));
    }
    const bool as_key =
        !frames_.empty() && frames_.back().node.kind == YamlNode::Kind::kMap && !frames_.back().pending;
    if (as_key) throw Rejection(mark, "a field's name must be a word");
    frames_.push_back({{kind, Line(mark), "", false, {}, {}}, std::nullopt});
  }

  void Close() {
    YamlNode node = std::move(frames_.back().node);
    frames_.pop_back();
    Attach(std::move(node));
  }

  void Add(const YAML::Mark& mark, YamlNode node) {
    const bool as_key =
        !frames_.empty() && frames_.back().node.kind == YamlNode::Kind::kMap && !frames_.back().pending;
    if (!as_key) return Attach(std::move(node));
    if (node.kind != YamlNode::Kind::kScalar) throw Rejection(mark, "a field's name must be a word");
    frames_.back().pending = YamlEntry{std::move(node.scalar), node.line, {}};
  }

  void Attach(YamlNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kSequence) {
      frame.node.items.push_back(std::move(node));
      return;
    }
    frame.pending->value = std::move(node);
    frame.node.entries.push_back(*std::move(frame.pending));
    frame.pending.reset();
  }

  YamlNode root_;
  std::vector<Frame> frames_;
};

class Discard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw Rejection(mark, "a second document begins here; a file may contain only one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

}  // namespace

absl::StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view source_name) {
  const std::string source(source_name);
  if (text.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", text.size(), " bytes exceed the limit of ", kMaxYamlBytes, " bytes"));
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return YamlNode();
    Discard discard;
    parser.HandleNextDocument(discard);
    return builder.TakeRoot();
  } catch (const Rejection& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ":", error.mark.line + 1, ": ", error.msg));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ":", error.mark.line + 1,
                                                   ": this is not valid YAML: ", error.msg,
                                                   std::string(TabHint(text, error.mark.line))));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", error.what()));
  }
}

}  // namespace atl
