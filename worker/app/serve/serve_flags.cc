#include "worker/app/serve/serve_flags.h"

#include "absl/strings/str_cat.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "worker/app/source_flags.h"

namespace atl {

CLI::App* AddServeCommand(CLI::App& app, ServeFlags& flags) {
  CLI::App* const command = app.add_subcommand(
      "serve",
      "Serve a model over HTTP, with the completions of OpenAI's API, for programs that measure or use it");
  AddSource(*command, flags.source, /*inherited=*/false);
  AddTokenizer(*command, flags.tokenizer, flags.tokenizer_pattern);
  command->add_option("--listen", flags.server.address, "Address to listen on; port 0: any free one")
      ->capture_default_str();
  command->add_flag_callback(
      "--insecure-bind", [&flags] { flags.server.exposure = ServeExposure::kAnywhere; },
      "Allow an address that other machines can reach. There is no encryption");
  command
      ->add_option(
          "--api-key-file", flags.key_file,
          "Require the key in the first line of this file from every caller (Authorization: Bearer KEY); "
          "reloaded when it changes")
      ->check(NotEmpty());
  command
      ->add_option("--name", flags.name,
                   "Name of the model in requests; default: that of the file or folder, else atoll")
      ->check(NotEmpty());
  command->add_option("--timeout", flags.timeout_s, "Seconds that the model may work on one request")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86400.0));
  command
      ->add_option("--max-waiting", flags.server.max_waiting,
                   "Number of requests that wait for the model; more get status 503")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  const std::string program = absl::StrCat(app.get_name(), " serve ");
  SetHelp(
      *command,
      {.examples = {{program + "--model trained"},
                    {program + "--model model.safetensors --config run.yaml --listen 127.0.0.1:9000"},
                    {program + "--checkpoint before-lr-change --api-key-file key.txt"}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected, ExitCode::kBadFiles},
       .notes = "Paths: /v1/completions (POST), /v1/models, /healthz. docs/reference/evaluation.md lists the "
                "fields "
                "and the bounds. A live run is read once, at the start. The server prints its address, and "
                "ends on "
                "SIGTERM with exit code 0."});
  return command;
}

void SettleServeFlags(const CLI::App& command, ServeFlags& flags) { SettleSource(command, flags.source); }

}  // namespace atl
