#include "server/access/policies.h"
#include "server/access/permissions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"
#include "tests/fakes/dev_certs.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::optional<std::string> Match(const std::string& pattern, const std::string& san) {
  const auto parsed = SanPattern::Parse(pattern);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->Match(san) : std::nullopt;
}

TEST(SanPattern, FindsTheName) {
  EXPECT_EQ(Match("{name}", "worker-3"), "worker-3");
  EXPECT_EQ(Match("{name}", "w3.islands.example"), "w3.islands.example");
  EXPECT_EQ(Match("{name}.islands.example", "w3.islands.example"), "w3");
  EXPECT_EQ(Match("{name}.*.svc", "w3.team-a.svc"), "w3");
  EXPECT_EQ(Match("spiffe://*/worker/{name}", "spiffe://atoll/worker/w3"), "w3");
  EXPECT_EQ(Match("spiffe://*/ns/*/sa/{name}", "spiffe://td.example/ns/a/sa/w3"), "w3");
}

TEST(SanPattern, FitsNothingElse) {
  EXPECT_EQ(Match("{name}", "spiffe://atoll/worker/w3"), std::nullopt);
  EXPECT_EQ(Match("spiffe://*/worker/{name}", "w3"), std::nullopt);
  EXPECT_EQ(Match("spiffe://*/admin/{name}", "spiffe://atoll/worker/x/admin/ann"), std::nullopt);
  EXPECT_EQ(Match("spiffe://*/worker/{name}", "spiffe://atoll/worker/w3/x"), std::nullopt);
  EXPECT_EQ(Match("spiffe://*/worker/{name}", "spiffe:///worker/w3"), std::nullopt);
  EXPECT_EQ(Match("spiffe://*/worker/{name}", "spiffe://atoll/worker/"), std::nullopt);
  EXPECT_EQ(Match("{name}.*.svc", "w3.a.b.svc"), "w3.a");
  EXPECT_EQ(Match("{name}.islands.example", ".islands.example"), std::nullopt);
  EXPECT_EQ(Match("{name}.islands.example", "w3.islands.example.evil"), std::nullopt);
  EXPECT_FALSE(SanPattern::Parse("worker").ok());
  EXPECT_FALSE(SanPattern::Parse("{name}{name}").ok());
}

class PoliciesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tokens_ = *TokenStore::Open(dir_.File("access"), &clock_);
    rules_ = *CertificateRules::Create({});
    worker_token_ = Token(Role::kWorker, "w3");
    any_worker_token_ = Token(Role::kWorker, "");
    admin_token_ = Token(Role::kAdmin, "ann");
  }
  std::string Token(Role role, const std::string& name) {
    return tokens_->Create({.role = role, .name = name, .lifetime = std::nullopt, .created_by = ""})->text;
  }
  static Presented Certificate(std::vector<std::string> names, const std::string& bearer = "") {
    return {.subject_names = std::move(names), .certificates = "verified", .bearer = bearer, .peer = "here"};
  }
  static Presented Bearer(const std::string& text) {
    return {.subject_names = {}, .certificates = {}, .bearer = text, .peer = "here"};
  }
  /// "role name how", or the message.
  static std::string Show(const absl::StatusOr<Identity>& who) {
    if (!who.ok()) {
      EXPECT_TRUE(absl::IsUnauthenticated(who.status())) << who.status();
      return std::string(who.status().message());
    }
    return std::string(RoleName(who->role)) + " " + who->name + " " + who->how +
           (who->verified ? "" : " unverified");
  }

  FakeClock clock_;
  TestDir dir_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<CertificateRules> rules_;
  std::string worker_token_;
  std::string any_worker_token_;
  std::string admin_token_;
};

TEST_F(PoliciesTest, AnOpenRunAsksNobodyAndStillKnowsATokenWhenItSeesOne) {
  const auto open = MakeOpenPolicy(tokens_.get());
  EXPECT_EQ(Show(open->Identify(Bearer(""))), "admin  none unverified");
  EXPECT_EQ(Show(open->Identify(Bearer(admin_token_))), "admin ann token");
  EXPECT_THAT(Show(open->Identify(Bearer("atoll_x_y"))), HasSubstr("does not know the token"));
}

TEST_F(PoliciesTest, ByTokenAlone) {
  const auto policy = MakeAskingPolicy(tokens_.get(), nullptr);
  EXPECT_EQ(Show(policy->Identify(Bearer(worker_token_))), "worker w3 token");
  EXPECT_EQ(Show(policy->Identify(Bearer(any_worker_token_))), "worker  token");
  EXPECT_THAT(Show(policy->Identify(Bearer(""))),
              AllOf(HasSubstr("--token-file"), HasSubstr("tokens create")));
}

TEST_F(PoliciesTest, ByCertificate) {
  const auto policy = MakeAskingPolicy(tokens_.get(), rules_.get());
  EXPECT_EQ(Show(policy->Identify(Certificate({"w3"}))), "worker w3 certificate");
  EXPECT_EQ(Show(policy->Identify(Certificate({"w3.x", "spiffe://td/worker/w4"}))), "worker w4 certificate");
  EXPECT_EQ(Show(policy->Identify(Certificate({"spiffe://td/admin/ann"}))), "admin ann certificate");
  EXPECT_EQ(Show(policy->Identify(Certificate({"spiffe://td/observer/prometheus"}))),
            "observer prometheus certificate");
  EXPECT_THAT(Show(policy->Identify(Certificate({"Ann Smith", "spiffe://td/boss/bob"}))),
              AllOf(HasSubstr("spiffe://td/boss/bob"), HasSubstr("do not identify a caller")));
  EXPECT_THAT(Show(policy->Identify(Certificate({}))), HasSubstr("no subject alternative names"));
  EXPECT_THAT(Show(policy->Identify(Bearer(""))), HasSubstr("--tls-cert"));
}

TEST_F(PoliciesTest, ATokenBesideACertificateSaysWhoItIs) {
  const auto policy = MakeAskingPolicy(tokens_.get(), rules_.get());
  EXPECT_EQ(Show(policy->Identify(Certificate({"w3"}, worker_token_))), "worker w3 token");
  EXPECT_EQ(Show(policy->Identify(Certificate({"w5"}, any_worker_token_))), "worker w5 token");
  EXPECT_EQ(Show(policy->Identify(Certificate({"w5"}, admin_token_))), "admin ann token");
  EXPECT_THAT(Show(policy->Identify(Certificate({"w4"}, worker_token_))),
              AllOf(HasSubstr("worker w4"), HasSubstr("worker w3")));
  EXPECT_THAT(Show(policy->Identify(Certificate({"w3"}, "atoll_no_token"))),
              HasSubstr("does not know the token"));
}

TEST_F(PoliciesTest, ASeparateAdminCaAloneMakesOperators) {
  DevCerts certs;
  certs.Make("--separate-admin-ca --admin ann --worker w3");
  DevCerts others;
  others.Make("--separate-admin-ca --admin ann");
  const auto rules = CertificateRules::Create({.admin_ca = [&] { return certs.Read("admin-ca.pem"); }});
  ASSERT_TRUE(rules.ok());
  const auto policy = MakeAskingPolicy(tokens_.get(), rules->get());
  Presented admin = Certificate({"spiffe://atoll/admin/ann"});
  admin.certificates = certs.Read("admin-ann.pem");
  EXPECT_EQ(Show(policy->Identify(admin)), "admin ann certificate");
  // Signed by somebody else, whatever it calls itself.
  admin.certificates = others.Read("admin-ann.pem");
  EXPECT_THAT(Show(policy->Identify(admin)), HasSubstr("--tls-admin-ca"));
  Presented worker = Certificate({"spiffe://atoll/worker/w3"});
  worker.certificates = certs.Read("worker-w3.pem");
  EXPECT_EQ(Show(policy->Identify(worker)), "worker w3 certificate");
}

TEST_F(PoliciesTest, RolesHaveNames) {
  for (const Role role : {Role::kObserver, Role::kWorker, Role::kAdmin}) {
    EXPECT_EQ(ParseRole(RoleName(role)), role);
  }
  EXPECT_EQ(ParseRole("root"), std::nullopt);
}

TEST(Permissions, ADeniedCallWithoutANameSaysSo) {
  const Identity worker{.role = Role::kWorker, .name = "w1", .how = "certificate", .verified = true};
  const absl::Status denied = CheckMember(worker, "", MemberAct::kLook);
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_EQ(denied.message(),
            "worker w1 (by certificate) calls for no worker: the name in the request is empty");
  const Identity admin{.role = Role::kAdmin, .name = "ann", .how = "token", .verified = true};
  EXPECT_THAT(std::string(CheckMember(admin, "", MemberAct::kLook).message()),
              HasSubstr("admin ann (by token) calls"));
  EXPECT_TRUE(CheckMember(worker, "w1", MemberAct::kContribute).ok());
  EXPECT_TRUE(CheckMember(worker, "observer-doctor", MemberAct::kLook).ok());
}

}  // namespace
}  // namespace atl
