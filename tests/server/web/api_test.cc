// The JSON and who may have it, without sockets.
#include "server/web/api.h"

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/web/files.h"
#include "tests/common/fake_clock.h"
#include "tests/fakes/fake_coordinator.h"
#include "tests/server/web/fake_policy.h"
#include "tests/server/web/web_run.h"

namespace atl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kHostile[] = "<img src=x onerror=\"alert(1)\">\x01\xe2\x80\xae";

class WebApiTest : public ::testing::Test {
 protected:
  WebApi& Api(const AccessPolicy* access) {
    api_ = std::make_unique<WebApi>(
        WebApiOptions{.access = access, .names = {}, .token_hint = "look into admin.token"}, &coordinator_,
        &clock_, &history_);
    return *api_;
  }
  static WebRequest Get(const std::string& path, const std::string& token = "") {
    WebRequest request;
    request.method = "GET";
    request.path = path;
    request.host = "127.0.0.1:7604";
    request.peer = "127.0.0.1:50123";
    if (!token.empty()) request.authorization = "Bearer " + token;
    return request;
  }
  static WebRequest Post(const std::string& path, const std::string& body, const std::string& token) {
    WebRequest request = Get(path, token);
    request.method = "POST";
    request.content_type = "application/json";
    request.action = "1";
    request.body = body;
    return request;
  }
  std::vector<std::string> Asked() const {
    std::vector<std::string> what;
    for (const auto& asked : coordinator_.admin_control.asked()) what.push_back(asked.what);
    return what;
  }

  FakeClock clock_;
  FakeCoordinator coordinator_;
  RunHistory history_{&coordinator_, &clock_};
  FakePolicy open_;
  FakePolicy asking_{/*asks_everybody=*/true};
  std::unique_ptr<WebApi> api_;
};

TEST_F(WebApiTest, ServesThePagesFilesToEverybody) {
  WebApi& api = Api(&asking_);
  const WebReply page = api.Answer(Get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  for (const WebFile& file : WebFiles()) {
    WebRequest request = Get(file.path);
    EXPECT_EQ(api.Answer(request).body, file.bytes) << file.path;
    request.if_none_match = "\"" + std::string(file.sha256) + "\"";
    EXPECT_EQ(api.Answer(request).status, 304) << file.path;
    request.method = "POST";
    request.content_type = "application/json";
    EXPECT_EQ(api.Answer(request).status, 405) << file.path;
  }
  for (const char* path :
       {"/nothing", "/../etc/passwd", "/page.css/", "//", "/api/v1/", "/api/v2/status", ""}) {
    EXPECT_EQ(api.Answer(Get(path)).status, 404) << path;
  }
}

TEST_F(WebApiTest, ThePageHasNothingFromElsewhereAndNothingInline) {
  for (const WebFile& file : WebFiles()) {
    const std::string text(file.bytes);
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                             "onclick=", "style=\"", "<style", "//cdn", "https://"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << file.path << ": " << word;
    }
    // The one address in it is a name space, which nobody fetches.
    for (size_t at = text.find("http://"); at != std::string::npos; at = text.find("http://", at + 1)) {
      EXPECT_EQ(text.substr(at, 26), "http://www.w3.org/2000/svg") << file.path;
    }
  }
}

TEST_F(WebApiTest, ShowsWhatTheAdminPortShows) {
  coordinator_.status_view.run_name = kHostile;
  coordinator_.status_view.state = RunState::kDegraded;
  coordinator_.status_view.waiting.push_back(
      {.what = "fragment 0: w2", .from = {"w2"}, .ends_in_s = 3, .since_s = 1.5});
  WorkerView worker;
  worker.name = "w2";
  worker.state = "active";
  worker.push_bytes = uint64_t{1} << 60;
  worker.progress.loss = std::nan("");
  coordinator_.worker_views = {worker};
  WebApi& api = Api(&open_);
  const json status = json::parse(api.Answer(Get("/api/v1/status")).body);
  EXPECT_EQ(status["runName"], kHostile);
  EXPECT_EQ(status["state"], "RUN_STATE_DEGRADED");
  EXPECT_EQ(status["waiting"][0],
            json({{"what", "fragment 0: w2"}, {"from", {"w2"}}, {"endsInS", 3.0}, {"sinceS", 1.5}}));
  const json workers = json::parse(api.Answer(Get("/api/v1/workers")).body);
  EXPECT_EQ(workers["workers"][0]["pushBytes"], "1152921504606846976");
  EXPECT_EQ(workers["workers"][0]["progress"]["loss"], "NaN");
  for (const char* path : {"metrics", "rounds", "events", "curve", "traffic", "launcher", "checkpoints"}) {
    const WebReply reply = api.Answer(Get(std::string("/api/v1/") + path));
    EXPECT_EQ(reply.status, 200) << path << reply.body;
    EXPECT_TRUE(json::accept(reply.body)) << path << reply.body;
  }
}

TEST_F(WebApiTest, ParametersAreNumbersWithinBounds) {
  WebApi& api = Api(&open_);
  for (const char* value : {"-1", "1001", "x", "", "1e3", "99999999999999999999", " 1;drop"}) {
    WebRequest request = Get("/api/v1/status");
    request.query["history"] = value;
    const WebReply reply = api.Answer(request);
    EXPECT_EQ(reply.status, 400) << value;
    EXPECT_THAT(reply.body, HasSubstr("history: takes a number from 0 to 1000"));
  }
}

TEST_F(WebApiTest, EventsAreListedAboveANumberAndEscaped) {
  WebApi& api = Api(&open_);
  for (uint64_t i = 1; i <= 1500; ++i) {
    EventView event;
    event.sequence = i;
    event.kind = i == 3 ? EventKind::kWorkerJoined : EventKind::kRoundClosed;
    event.worker = i == 3 ? "w9" : "";
    event.message = kHostile;
    coordinator_.Publish(event);
  }
  WebRequest request = Get("/api/v1/events");
  request.query = {{"after", "1490"}, {"limit", "3"}};
  const json read = json::parse(api.Answer(request).body);
  ASSERT_EQ(read["events"].size(), 3u);
  EXPECT_EQ(read["events"][2]["sequence"], "1500");
  EXPECT_EQ(read["events"][0]["message"], kHostile);
  // Of all but the comings and goings only the newest are kept.
  EXPECT_EQ(history_.Events(0, 10'000).size(), RunHistory::kEvents);
  clock_.Advance(Seconds(10));
  const json curve = json::parse(api.Answer(Get("/api/v1/curve")).body);
  ASSERT_EQ(curve["milestones"].size(), 1u);
  EXPECT_EQ(curve["milestones"][0]["worker"], "w9");
}

TEST_F(WebApiTest, ManyWhoLookCostNoMoreThanOne) {
  int asked = 0;
  coordinator_.admin_control.on_rounds = [&](FragmentId, Version, uint32_t) {
    ++asked;
    return RoundListView();
  };
  WebApi& api = Api(&open_);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(api.Answer(Get("/api/v1/rounds")).status, 200);
  EXPECT_EQ(asked, 1);
  clock_.Advance(Seconds(2));
  const WebReply reply = api.Answer(Get("/api/v1/rounds"));
  EXPECT_EQ(asked, 2);
  WebRequest again = Get("/api/v1/rounds");
  again.if_none_match = "\"" + reply.etag + "\"";
  EXPECT_EQ(api.Answer(again).status, 304);
  EXPECT_THAT(api.Answer(again).body, IsEmpty());
}

TEST_F(WebApiTest, WhereEverybodyIsAskedNobodyLooksWithoutAToken) {
  WebApi& api = Api(&asking_);
  for (const char* path : {"session", "status", "workers", "metrics", "rounds", "events", "curve", "traffic",
                           "launcher", "checkpoints"}) {
    const std::string full = std::string("/api/v1/") + path;
    const WebReply reply = api.Answer(Get(full));
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_THAT(reply.headers, ElementsAre(testing::Pair("WWW-Authenticate", HasSubstr("Bearer"))));
    EXPECT_THAT(reply.body, AllOf(HasSubstr("Authorization: Bearer"), Not(HasSubstr("--"))))
        << "no program's";
    EXPECT_EQ(api.Answer(Get(full, "guess")).status, 401) << path;
    WebRequest without_token = Get(full);
    without_token.authorization = "Basic dTpw";
    EXPECT_EQ(api.Answer(without_token).body, reply.body) << path;
    EXPECT_EQ(api.Answer(Get(full, "observer-token")).status, 200) << path;
  }
  EXPECT_EQ(api.Answer(Get("/api/v1/status", "worker-token")).status, 403);
}

TEST_F(WebApiTest, SessionSaysWhoOneIs) {
  WebApi& api = Api(&open_);
  json session = json::parse(api.Answer(Get("/api/v1/session")).body);
  EXPECT_EQ(session["mayAct"], false);
  EXPECT_EQ(session["verified"], false);
  EXPECT_EQ(session["tokenHint"], "look into admin.token");
  session = json::parse(api.Answer(Get("/api/v1/session", "admin-token")).body);
  EXPECT_EQ(session["mayAct"], true);
  EXPECT_EQ(session["name"], "ann");
  session = json::parse(api.Answer(Get("/api/v1/session", "observer-token")).body);
  EXPECT_EQ(session["mayAct"], false);
  EXPECT_EQ(session["role"], "observer");
  EXPECT_EQ(api.Answer(Get("/api/v1/session", "wrong")).status, 401);
}

TEST_F(WebApiTest, NothingIsDoneWithoutAnAdminsToken) {
  struct Case {
    const AccessPolicy* access;
    const char* token;
    int status;
  };
  for (const Case& c : {Case{nullptr, "", 401}, Case{nullptr, "admin-token", 401}, Case{&open_, "", 401},
                        Case{&open_, "guess", 401}, Case{&open_, "observer-token", 403},
                        Case{&open_, "worker-token", 403}, Case{&asking_, "", 401}}) {
    WebApi& api = Api(c.access);
    for (const char* path : {"control-run", "control-worker", "scale-workers", "create-checkpoint"}) {
      const WebReply reply = api.Answer(Post(std::string("/api/v1/") + path, "{}", c.token));
      EXPECT_EQ(reply.status, c.status) << path << " " << c.token;
      EXPECT_THAT(reply.body, Not(HasSubstr("--"))) << "an option of a program";
    }
  }
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(WebApiTest, AnAdminsActionsArriveWithWhoAsked) {
  WebApi& api = Api(&open_);
  coordinator_.status_view.state = RunState::kPaused;
  const auto act = [&](const char* path, const char* body) {
    const WebReply reply = api.Answer(Post(std::string("/api/v1/") + path, body, "admin-token"));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  };
  EXPECT_EQ(act("control-run", R"({"action":"PAUSE","reason":"lunch"})"),
            json({{"state", "RUN_STATE_PAUSED"}, {"message", "as you say"}}));
  EXPECT_EQ(act("control-worker", R"({"worker":"w1","action":"DRAIN","atOnce":true})")["message"],
            "as you say");
  EXPECT_EQ(act("scale-workers", R"({"add":2})")["target"], 4);
  act("create-checkpoint", R"({"name":"noon"})");
  EXPECT_THAT(Asked(), ElementsAre("run 1 lunch", "worker w1 1 at once ", "add 2", "checkpoint create noon"));
  const AdminCaller caller = coordinator_.admin_control.asked()[0].caller;
  EXPECT_EQ(caller.proven, "ann");
  EXPECT_EQ(caller.how, "token");
  EXPECT_EQ(caller.by, "web");
  EXPECT_EQ(caller.user, "") << "a page calls itself nothing";
  EXPECT_EQ(caller.peer, "127.0.0.1:50123");
}

TEST_F(WebApiTest, ARealRunRecordsWhoActedAndHowItWasProven) {
  WebRun real;
  EventCatcher events(&real.coordinator());
  WebApi api({.access = &open_, .names = {}, .token_hint = {}}, &real.coordinator(), &clock_, &history_);
  const auto act = [&](const char* action) {
    const std::string body = absl::StrFormat(R"({"action":"%s"})", action);
    return api.Answer(Post("/api/v1/control-run", body, "admin-token")).status;
  };
  EXPECT_EQ(act("PAUSE"), 200);
  EXPECT_EQ(act("PAUSE"), 409);
  EXPECT_THAT(events.WaitFor(EventKind::kAdminAction, 0)->message,
              HasSubstr("ann (token, by web, 127.0.0.1:50123): pause: the run is paused"));
  EXPECT_THAT(events.WaitFor(EventKind::kAdminAction, 1)->message,
              HasSubstr("ann (token, by web, 127.0.0.1:50123): pause: refused"));
  EXPECT_THAT(real.coordinator().GetStatus(0).state_reason, HasSubstr("ann (token, by web"));
}

TEST_F(WebApiTest, WhatIsNoActionIsRejectedAndSaysWhy) {
  WebApi& api = Api(&open_);
  const auto rejected = [&](const char* path, const std::string& body) {
    const WebReply reply = api.Answer(Post(std::string("/api/v1/") + path, body, "admin-token"));
    EXPECT_EQ(reply.status, 400) << body;
    return json::parse(reply.body)["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(rejected("control-run", "{}"), HasSubstr("action"));
  EXPECT_THAT(rejected("control-run", R"({"action":"FORMAT"})"), HasSubstr("ControlRunRequest"));
  EXPECT_THAT(rejected("control-run", R"({"action":"PAUSE","extra":1})"), HasSubstr("extra"));
  EXPECT_THAT(rejected("control-worker", R"({"action":"DRAIN","worker":"a","worker":"b"})"),
              HasSubstr("'worker' is given twice"));
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("\0\xff", 2), std::string(9000, '['),
        std::string("action=PAUSE"), std::string("<xml/>"), std::string("{action: 'PAUSE'}")}) {
    rejected("control-run", body);
  }
  rejected("control-worker", R"({"action":"DRAIN"})");
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(api.Answer(Get("/api/v1/control-run", "admin-token")).status, 405);

  coordinator_.admin_control.answer = absl::FailedPreconditionError("the run is not paused");
  const WebReply reply = api.Answer(Post("/api/v1/control-run", R"({"action":"RESUME"})", "admin-token"));
  EXPECT_EQ(reply.status, 409);
  EXPECT_THAT(reply.body, HasSubstr("the run is not paused"));
}

}  // namespace
}  // namespace atl
