#include "protos/config/yaml_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"
#include "protos/config/defaults.h"
#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// What to write for a section that a file must have; empty: the allowed values say it.
std::string_view ExampleOf(std::string_view path) {
  if (path == "model") {
    return "write `model: external` for a model of your own, a preset such as `model: gpt2`, or `model: "
           "{gpt: {layers: 4, heads: 4, width: 128, context: 128, vocabulary: 256}}` for a shape of your own";
  }
  if (path == "data") {
    return "write `data: {tokenizer: bytes}`, with the tokenizer that made the token files; a run with "
           "`model: external` needs no data section";
  }
  return "";
}

/// Texts of several names, which a file may also give as a list.
bool IsListOfNames(std::string_view path) { return path == "evaluation.tasks"; }

/// A list of words as the text with commas; any other node as it is.
YamlNode AsText(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kSequence) return node;
  YamlNode text;
  text.kind = YamlNode::Kind::kScalar;
  text.line = node.line;
  text.quoted = true;
  std::vector<std::string> words;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kScalar) return node;
    words.push_back(item.scalar);
  }
  text.scalar = absl::StrJoin(words, ", ");
  return text;
}

class Reader {
 public:
  YamlReading Read(const YamlNode& root, Message* message) {
    if (root.kind == YamlNode::Kind::kNull) {
      Problem("", 0, "the file is empty");
    } else {
      Section(root, "", 0, message);
    }
    return std::move(reading_);
  }

 private:
  using Seen = std::map<const FieldDescriptor*, int>;  // the line where it was first given

  void Problem(const std::string& path, int line, std::string text) {
    reading_.problems.push_back({path, std::move(text), line});
  }

  // `line` is the line of the section's name.
  void Section(const YamlNode& node, const std::string& path, int line, Message* message) {
    const bool is_section = node.kind == YamlNode::Kind::kMap || node.kind == YamlNode::Kind::kNull;
    if (!is_section) {
      Problem(path, line > 0 ? line : node.line,
              absl::StrCat("has the wrong type; allowed: a section of the fields ",
                           absl::StrJoin(FieldNames(message->GetDescriptor()), ", ")));
      return;
    }
    Seen seen;
    for (const YamlEntry& entry : node.entries) Entry(entry, path, &seen, message);
    Choices(message->GetDescriptor(), seen, path, line);
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      if (!seen.contains(field) && field->real_containing_oneof() == nullptr)
        Absent(field, path, line, message);
    }
  }

  void Entry(const YamlEntry& entry, const std::string& path, Seen* seen, Message* message) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(entry.key);
    if (field == nullptr) return Unknown(entry, path, message->GetDescriptor());
    const std::string child = Child(path, field);
    const auto [first, is_new] = seen->emplace(field, entry.line);
    if (!is_new) {
      return Problem(child, entry.line, absl::StrCat("is given twice; first on line ", first->second));
    }
    reading_.lines[child] = entry.line;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Section(entry.value, child, entry.line,
                     message->GetReflection()->MutableMessage(message, field));
    }
    const YamlNode value = IsListOfNames(child) ? AsText(entry.value) : entry.value;
    if (value.kind != YamlNode::Kind::kScalar) {
      const bool nothing = value.kind == YamlNode::Kind::kNull;
      return Problem(child, entry.line,
                     absl::StrCat(nothing ? "has no value" : "has the wrong type", "; allowed: ",
                                  IsListOfNames(child) ? "names as a text with commas or as a list"
                                                       : AllowedText(field)));
    }
    std::string complaint = SetFromText(field, value.scalar, value.quoted, message);
    if (!complaint.empty()) return Problem(child, entry.line, std::move(complaint));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) OldWord(entry, child, field);
  }

  void OldWord(const YamlEntry& entry, const std::string& path, const FieldDescriptor* field) {
    const auto* const value = FindChoice(field->enum_type(), entry.value.scalar);
    if (value == nullptr || OldSpelling(value) != entry.value.scalar) return;
    reading_.old_words.push_back(
        {path,
         absl::StrCat("'", entry.value.scalar, "' is now called '", Spelling(value),
                      "'; use the new name, because the next release rejects the old one"),
         entry.line});
  }

  void Unknown(const YamlEntry& entry, const std::string& path, const Descriptor* descriptor) {
    const std::vector<std::string> names = FieldNames(descriptor);
    const std::string meant = DidYouMean(entry.key, names);
    std::string text = absl::StrCat("unknown field ", Quoted(entry.key), "; ");
    if (!meant.empty()) absl::StrAppend(&text, "did you mean '", meant, "'? ");
    Problem(path, entry.line, absl::StrCat(text, "allowed: ", absl::StrJoin(names, ", ")));
  }

  // Exactly one field of a oneof must be given.
  void Choices(const Descriptor* descriptor, const Seen& seen, const std::string& path, int line) {
    for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {
      const auto* oneof = descriptor->oneof_decl(i);
      std::vector<std::string> names;
      int given = 0;
      for (int f = 0; f < oneof->field_count(); ++f) {
        names.push_back(oneof->field(f)->name());
        given += seen.contains(oneof->field(f)) ? 1 : 0;
      }
      if (given == 1) continue;
      Problem(path, line,
              absl::StrCat(given == 0 ? "gives no kind" : "gives more than one kind",
                           "; allowed: exactly one of ", absl::StrJoin(names, ", ")));
    }
  }

  void Absent(const FieldDescriptor* field, const std::string& path, int line, Message* message) {
    const v1::FieldRule& rule = RuleOf(field);
    if (rule.required()) {
      const std::string child = Child(path, field);
      const std::string_view example = ExampleOf(child);
      return Problem(child, line,
                     example.empty() ? absl::StrCat("is missing; allowed: ", AllowedText(field))
                                     : absl::StrCat("is missing; ", std::string(example)));
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return FillWithDefaults(message->GetReflection()->MutableMessage(message, field));
    }
    if (rule.has_default_value()) SetFromText(field, rule.default_value(), /*quoted=*/false, message);
  }

  static std::string Child(const std::string& path, const FieldDescriptor* field) {
    return path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
  }

  YamlReading reading_;
};

}  // namespace

YamlReading ReadMessage(const YamlNode& root, Message* message) { return Reader().Read(root, message); }

}  // namespace atl
