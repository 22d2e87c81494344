#include "server/web/csrf_guard.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

WebRequest Action() {
  WebRequest request;
  request.method = "POST";
  request.path = "/api/v1/control-run";
  request.host = "127.0.0.1:7604";
  request.content_type = "application/json";
  request.action = "1";
  return request;
}

int Rejection(const WebRequest& request) {
  const auto rejected = RejectForeign(request, {"atoll.example"});
  return rejected ? rejected->status : 0;
}

TEST(CsrfGuardTest, AddressesAndKnownNamesAreOurs) {
  for (const char* host : {"127.0.0.1:7604", "127.0.0.1", "localhost:7604", "LOCALHOST", "[::1]:7604",
                           "[::1]", "192.168.1.7:80", "atoll.example", "Atoll.Example:7604"}) {
    EXPECT_TRUE(IsOurHost(host, {"atoll.example"})) << host;
  }
  // What a page of another site sends after its name was made to resolve to this machine.
  for (const char* host :
       {"evil.example:7604", "127.0.0.1.evil.example", "localhost.evil.example", "atoll.example.evil", "",
        ":7604", "[::1", "[evil.example]:7604", "a:b:c", "127.0.0.1@evil.example"}) {
    EXPECT_FALSE(IsOurHost(host, {"atoll.example"})) << host;
  }
}

TEST(CsrfGuardTest, ThePageItselfMayComeFromALink) {
  WebRequest page;
  page.method = "GET";
  page.path = "/";
  page.host = "localhost:7604";
  page.fetch_site = "cross-site";
  EXPECT_EQ(Rejection(page), 0);
  page.host = "evil.example";
  EXPECT_EQ(Rejection(page), 403);
}

TEST(CsrfGuardTest, OtherSitesPagesDoNotLook) {
  WebRequest look;
  look.method = "GET";
  look.path = "/api/v1/status";
  look.host = "localhost:7604";
  EXPECT_EQ(Rejection(look), 0);  // curl
  look.fetch_site = "same-origin";
  EXPECT_EQ(Rejection(look), 0);
  for (const char* site : {"cross-site", "same-site"}) {
    look.fetch_site = site;
    EXPECT_EQ(Rejection(look), 403) << site;
  }
}

TEST(CsrfGuardTest, ActionsAreWhatOnlyOurPageCanSend) {
  EXPECT_EQ(Rejection(Action()), 0);
  WebRequest request = Action();
  request.origin = "http://127.0.0.1:7604";
  request.content_type = "Application/JSON; charset=utf-8";
  EXPECT_EQ(Rejection(request), 0);
  for (const char* origin :
       {"http://evil.example", "null", "", "http://127.0.0.1:7605", "http://localhost:7604"}) {
    request.origin = origin;
    EXPECT_EQ(Rejection(request), 403) << origin;
  }
  // What an HTML form can send.
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"}) {
    request = Action();
    request.content_type = type;
    EXPECT_EQ(Rejection(request), 415) << type;
  }
  request = Action();
  request.action = "";
  EXPECT_EQ(Rejection(request), 403);
  request = Action();
  request.fetch_site = "cross-site";
  EXPECT_EQ(Rejection(request), 403);
}

}  // namespace
}  // namespace atl
