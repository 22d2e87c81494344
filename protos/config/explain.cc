#include "protos/config/explain.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "atoll/v1/run.pb.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Starts the sentence in the doc of a field whose default depends on other fields.
constexpr char kDefaultInWords[] = " Default: ";

struct Row {
  std::string name;
  std::string given;  // default, or "required"
  std::string allowed;
  std::string doc;
};

struct Table {
  std::string path;
  std::string doc;
  std::vector<Row> rows;
};

std::string GivenText(const v1::FieldRule& rule) {
  if (rule.required()) return "required";
  if (absl::StrContains(rule.doc(), kDefaultInWords)) return "varies";
  return rule.has_default_value() ? rule.default_value() : "empty";
}

// One table per section, in the order of the schema. A section that has only subsections gets no table.
void Collect(const Descriptor* descriptor, const std::string& path, const std::string& doc,
             std::vector<Table>* tables) {
  Table table{path, doc, {}};
  std::vector<const FieldDescriptor*> sections;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      sections.push_back(field);
    } else {
      table.rows.push_back(
          {field->name(), GivenText(RuleOf(field)), AllowedText(field), RuleOf(field).doc()});
    }
  }
  if (!table.rows.empty()) tables->push_back(table);
  for (const FieldDescriptor* field : sections) {
    const v1::FieldRule& rule = RuleOf(field);
    const std::string child = path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
    Collect(field->message_type(), child, rule.doc(), tables);
  }
}

std::vector<Table> Tables() {
  std::vector<Table> tables;
  Collect(v1::RunConfig::descriptor(), "", "", &tables);
  return tables;
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "&lt;"}}); }

/// Whether the field is `path`, or in the section `path`. An empty path has all fields.
bool IsWithin(const std::string& field, const std::string& path) {
  return path.empty() || field == path || absl::StartsWith(field, path + ".");
}

}  // namespace

std::string ExplainRunConfig(const std::string& path) {
  std::string text;
  for (Table& table : Tables()) {
    std::erase_if(table.rows,
                  [&](const Row& row) { return !IsWithin(absl::StrCat(table.path, ".", row.name), path); });
    if (table.rows.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n", table.path, ": ", table.doc, "\n");
    for (const Row& row : table.rows) {
      absl::StrAppendFormat(&text, "  %-24s %-9s %s\n%28s%s\n", row.name, row.given, row.allowed, "",
                            row.doc);
    }
  }
  return text;
}

std::string ExplainRunConfigMarkdown() {
  std::string text;
  for (const Table& table : Tables()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "### `", table.path, "`: ", table.doc, "\n\n",
                    "| field | default | allowed | meaning |\n|---|---|---|---|\n");
    for (const Row& row : table.rows) {
      absl::StrAppend(&text, "| `", row.name, "` | ", Cell(row.given), " | ", Cell(row.allowed), " | ",
                      Cell(row.doc), " |\n");
    }
  }
  return text;
}

}  // namespace atl
