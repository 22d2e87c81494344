#include "protos/config/schema.h"

#include <functional>

#include "atoll/v1/run.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/field_value.h"

namespace atl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const FieldDescriptor* Field(const Descriptor* descriptor, const std::string& name) {
  const FieldDescriptor* field = descriptor->FindFieldByName(name);
  EXPECT_NE(field, nullptr) << name;
  return field;
}

void ForEachField(const Descriptor* descriptor, const std::function<void(const FieldDescriptor*)>& visit) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    visit(descriptor->field(i));
    if (descriptor->field(i)->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachField(descriptor->field(i)->message_type(), visit);
    }
  }
}

TEST(SchemaTest, EveryFieldIsDocumentedAndOfAKindThatTheParserReads) {
  int fields = 0;
  ForEachField(v1::RunConfig::descriptor(), [&](const FieldDescriptor* field) {
    ++fields;
    EXPECT_NE(RuleOf(field).doc(), "") << field->full_name();
    EXPECT_FALSE(field->is_repeated()) << field->full_name();
    const auto type = field->cpp_type();
    EXPECT_TRUE(type == FieldDescriptor::CPPTYPE_MESSAGE || type == FieldDescriptor::CPPTYPE_STRING ||
                type == FieldDescriptor::CPPTYPE_BOOL || type == FieldDescriptor::CPPTYPE_ENUM ||
                type == FieldDescriptor::CPPTYPE_DOUBLE || type == FieldDescriptor::CPPTYPE_UINT32 ||
                type == FieldDescriptor::CPPTYPE_UINT64)
        << field->full_name();
  });
  EXPECT_GT(fields, 50);
}

TEST(SchemaTest, EveryFieldIsRequiredOrHasADefaultThatItsOwnRuleAllows) {
  ForEachField(v1::RunConfig::descriptor(), [](const FieldDescriptor* field) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;
    const v1::FieldRule& rule = RuleOf(field);
    // A text may also be absent: it is empty then.
    const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !rule.required();
    EXPECT_TRUE(text || rule.required() != rule.has_default_value()) << field->full_name();
    if (!rule.has_default_value()) return;
    const auto* prototype =
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(field->containing_type());
    const std::unique_ptr<google::protobuf::Message> message(prototype->New());
    EXPECT_EQ(SetFromText(field, rule.default_value(), false, message.get()), "") << field->full_name();
    EXPECT_EQ(CheckValue(field, *message), "") << field->full_name();
  });
}

TEST(SchemaTest, BoundedFieldsAreBoundedOnBothSides) {
  ForEachField(v1::RunConfig::descriptor(), [](const FieldDescriptor* field) {
    const v1::FieldRule& rule = RuleOf(field);
    const bool real = field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    EXPECT_TRUE(rule.has_max() || !real) << field->full_name();
    EXPECT_EQ(rule.has_min(), rule.has_max()) << field->full_name();
    EXPECT_TRUE(!rule.has_min() || rule.min() < rule.max()) << field->full_name();
  });
}

TEST(SchemaTest, ChoicesAreSpeltInLowerCaseWithoutTheirPrefix) {
  EXPECT_THAT(Choices(v1::MergeWeights_descriptor()),
              ::testing::ElementsAre("uniform", "tokens", "tokens_squared_per_step"));
  EXPECT_EQ(FindChoice(v1::OuterOptimizer_descriptor(), "nesterov")->number(), v1::OUTER_OPTIMIZER_NESTEROV);
  EXPECT_EQ(FindChoice(v1::OuterOptimizer_descriptor(), "unspecified"), nullptr);
  EXPECT_EQ(FindChoice(v1::OuterOptimizer_descriptor(), "NESTEROV"), nullptr);
}

TEST(SchemaTest, AllowedTexts) {
  EXPECT_EQ(AllowedText(Field(v1::RunSection::descriptor(), "workers")), "a whole number from 1 to 10000");
  EXPECT_EQ(AllowedText(Field(v1::RunSection::descriptor(), "seed")),
            "a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(AllowedText(Field(v1::RoundSection::descriptor(), "quorum")), "a number above 0, at most 1");
  EXPECT_EQ(AllowedText(Field(v1::RoundSection::descriptor(), "deadline_s")),
            "a number from 0.05 to 604800 s");
  EXPECT_EQ(AllowedText(Field(v1::GptModel::descriptor(), "bias")), "true or false");
  EXPECT_EQ(
      AllowedText(Field(v1::CodecSection::descriptor(), "push")),
      "one of fp32, fp16, bf16, int8, int4, e3m0, int8_quantile, topk64, topk128, topk64_bf16, topk128_bf16");
}

TEST(SchemaTest, NumbersReadBackTheSame) {
  for (const double value : {0.1, 1e-8, 1.0 / 3, 0.0, 604800.0, 1e300, -2.5, 1e15, 1e22}) {
    EXPECT_EQ(std::stod(NumberText(value)), value) << NumberText(value);
  }
  EXPECT_EQ(NumberText(1000000), "1000000");
  EXPECT_EQ(NumberText(0.05), "0.05");
}

}  // namespace
}  // namespace atl
