#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/file.h"
#include "common/standard_output.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr unsigned kOwnerOnly = 0600;

struct CreateOptions {
  std::string role = "worker";
  std::string name;
  std::string expires;
  std::string out;
  bool any_name = false;
};

/// Converts "90d", "12h", "30m" or "60s" to seconds.
absl::StatusOr<double> ParseLifetime(const std::string& text) {
  if (text.empty()) return 0.0;
  double value = 0;
  double unit = 0;
  switch (text.back()) {
    case 's':
      unit = 1;
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86400;
      break;
    default:
      break;
  }
  const bool number = absl::SimpleAtod(text.substr(0, text.size() - 1), &value);
  if (unit > 0 && number && value > 0 && value < 1e6) return value * unit;
  return absl::InvalidArgumentError(
      absl::StrFormat("--expires '%s': expected a number and a unit, for example 90d, 12h, 30m", text));
}

absl::Status CheckRoleAndName(const CreateOptions& options) {
  if (options.role == "worker" && options.name.empty() != options.any_name) {
    return absl::InvalidArgumentError(
        "a worker token needs a name: give --name w3, or --any-name for a token that any worker can use");
  }
  if (options.role != "worker" && options.name.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--name is missing: give the name of the %s that uses the token, for the audit log", options.role));
  }
  return absl::OkStatus();
}

/// Revokes a token that was created but could not be handed over, so that nobody can find and use it. Returns
/// `why`, with what became of the token.
absl::Status RevokeLost(const GlobalOptions& global, const std::string& id, const absl::Status& why) {
  const absl::Status revoked = MakeAdminClient(global).RevokeToken(id).status();
  const std::string fate =
      revoked.ok() ? absl::StrFormat("token %s was revoked again, because it could not be stored", id)
                   : absl::StrFormat(
                         "token %s is still in force, because revoking it failed (%s): run "
                         "'atollctl tokens revoke %s'",
                         id, revoked.message(), id);
  return {why.code(), absl::StrFormat("%s; %s", why.message(), fate)};
}

/// To standard output, for a user or a script.
absl::Status PrintToken(const GlobalOptions& global, const v1::CreateTokenReply& reply) {
  if (global.json) ATOLL_RETURN_IF_ERROR(PrintJson(reply));
  if (!global.json) std::printf("%s\n", reply.token().c_str());
  return FlushStandardOutput();
}

absl::Status Create(const GlobalOptions& global, const CreateOptions& options) {
  ATOLL_RETURN_IF_ERROR(CheckRoleAndName(options));
  if (!options.out.empty() && FileExists(options.out)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--out %s: the file already exists; give another name", options.out));
  }
  v1::CreateTokenRequest request;
  request.set_role(options.role);
  request.set_name(options.name);
  ATOLL_ASSIGN_OR_RETURN(const double lifetime_s, ParseLifetime(options.expires));
  request.set_lifetime_s(lifetime_s);
  ATOLL_ASSIGN_OR_RETURN(const v1::CreateTokenReply reply, MakeAdminClient(global).CreateToken(request));
  if (!reply.warning().empty()) std::fprintf(stderr, "warning: %s\n", Printable(reply.warning()).c_str());
  if (options.any_name) {
    std::fprintf(stderr,
                 "with this token, unknown workers can join: consider `offenders: strict` "
                 "(docs/reference/byzantine.md)\n");
  }
  const std::string name = options.any_name ? "with any name" : options.name;
  if (!options.out.empty()) {
    const absl::Status kept = WriteFileAtomically(options.out, reply.token() + "\n", kOwnerOnly);
    if (!kept.ok()) return RevokeLost(global, reply.info().id(), kept);
    std::printf("token %s of %s %s is in %s\n", reply.info().id().c_str(), options.role.c_str(), name.c_str(),
                options.out.c_str());
    return absl::OkStatus();
  }
  if (!global.json) {
    std::fprintf(stderr, "token %s of %s %s; it is shown only now and stored nowhere:\n",
                 reply.info().id().c_str(), options.role.c_str(), name.c_str());
  }
  const absl::Status printed = PrintToken(global, reply);
  return printed.ok() ? printed : RevokeLost(global, reply.info().id(), printed);
}

std::string StateOf(const v1::TokenInfo& token, int64_t now_unix_nanos) {
  if (token.revoked_unix_nanos() != 0) return "revoked " + LocalTime(token.revoked_unix_nanos());
  const int64_t expires = token.expires_unix_nanos();
  if (expires != 0 && expires <= now_unix_nanos) return "expired " + LocalTime(expires);
  return expires == 0 ? "good" : "good until " + LocalTime(expires);
}

absl::Status List(const GlobalOptions& global) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ListTokensReply reply, MakeAdminClient(global).ListTokens());
  if (global.json) return PrintJson(reply);
  const int64_t now = SystemClock().WallNow().time_since_epoch().count();
  std::vector<std::vector<std::string>> rows;
  for (const v1::TokenInfo& token : reply.tokens()) {
    rows.push_back({token.id(), token.role(), token.name().empty() ? "(any)" : token.name(),
                    LocalTime(token.created_unix_nanos()), token.created_by(), StateOf(token, now)});
  }
  PrintLines(RenderTable({{"id"}, {"role"}, {"name"}, {"created"}, {"by"}, {"state"}}, rows));
  return absl::OkStatus();
}

absl::Status Revoke(const GlobalOptions& global, const std::string& id) {
  ATOLL_ASSIGN_OR_RETURN(const v1::TokenInfo token, MakeAdminClient(global).RevokeToken(id));
  if (global.json) return PrintJson(token);
  std::printf("token %s of %s %s is revoked, from the next call on\n", token.id().c_str(),
              token.role().c_str(), Printable(token.name()).c_str());
  return absl::OkStatus();
}

void AddCreate(CLI::App& tokens, const GlobalOptions& global, Action& action) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* create = tokens.add_subcommand("create", "Create a token; it is shown only once");
  create
      ->add_option("--role", options->role,
                   "Role: worker (may join), observer (may only read) or admin (may do everything)")
      ->capture_default_str()
      ->check(CLI::IsMember({"worker", "observer", "admin"}));
  create->add_option("--name", options->name, "Name of the holder; a worker can join only under this name");
  create->add_flag("--any-name", options->any_name,
                   "Let workers of every name use it: one token for a whole fleet");
  create->add_option("--expires", options->expires,
                     "Lifetime, for example 90d or 12h; default: until it is revoked");
  create
      ->add_option("--out", options->out,
                   "Write the token to this new file (mode 0600) instead of the terminal")
      ->check(NotEmpty());
  create->callback(
      [&global, &action, options] { action = [&global, options] { return Create(global, *options); }; });
  SetHelp(*create, {.examples = {{"atollctl tokens create --role worker --name w3 --out w3.token"},
                                 {"atollctl tokens create --role observer --name grafana --expires 90d"}},
                    .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                   ExitCode::kBadFiles}});
}

}  // namespace

void AddTokensCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* tokens =
      app.add_subcommand("tokens", "Create, list or revoke the tokens of workers, observers and operators");
  tokens->require_subcommand(1);
  AddCreate(*tokens, global, action);
  CLI::App* list =
      tokens->add_subcommand("list", "List the tokens: id, role, holder, state; never the secrets");
  list->callback([&global, &action] { action = [&global] { return List(global); }; });
  CLI::App* revoke = tokens->add_subcommand("revoke", "Revoke a token at once");
  auto id = std::make_shared<std::string>();
  revoke->add_option("ID", *id, "Id of the token, as 'tokens list' shows it")->required();
  revoke->callback([&global, &action, id] { action = [&global, id] { return Revoke(global, *id); }; });
  const std::vector<ExitCode> codes = {ExitCode::kUnavailable, ExitCode::kRejected};
  SetHelp(*list, {.examples = {{"atollctl tokens list"}}, .exit_codes = codes});
  SetHelp(*revoke, {.examples = {{"atollctl tokens revoke 7f3a9c12"}}, .exit_codes = codes});
  SetHelp(*tokens, {.examples = {{"atollctl tokens create --role worker --name w3 --out w3.token"}},
                    .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                   ExitCode::kBadFiles},
                    .notes = "These commands need an admin's certificate or token. The first token is in "
                             "DATA_DIR/access/admin.token on the coordinator's machine."});
}

}  // namespace atl
