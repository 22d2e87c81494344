#include "worker/app/source_flags.h"

#include "common/command_line/parse.h"
#include "protos/transport/security_flags.h"

namespace atl {

void AddAddresses(CLI::App& app, ModelSource& source, bool inherited) {
  CLI::Option* const data =
      app.add_option("--coordinator", source.coordinator,
                     inherited ? "Address of the coordinator's data port (Env:ATOLL_COORDINATOR)"
                               : "Address of the coordinator's data port")
          ->capture_default_str();
  if (!inherited) data->envname("ATOLL_COORDINATOR");
  app.add_option("--admin", source.admin,
                 "Address of the coordinator's admin port, for --version and --checkpoint. Alone: read the "
                 "newest version there")
      ->capture_default_str()
      ->envname("ATOLL_ADMIN");
}

void AddComputation(CLI::App& app, ModelSource& source) {
  AddClientSecurityFlags(app, source.security);
  app.add_option("--device", source.device, "Device to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", source.threads, "Threads for computation; 0: LibTorch's choice")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

void AddSource(CLI::App& app, ModelSource& source, bool inherited) {
  AddAddresses(app, source, inherited);
  CLI::Option* const version =
      app.add_option("--version", source.stored.version,
                     "Use this version of the run, if it is still stored (checkpoint.keep_versions)")
          ->check(NotNegative());
  CLI::Option* const checkpoint = app.add_option("--checkpoint", source.stored.checkpoint,
                                                 "Use this checkpoint of the run; needs an admin's token")
                                      ->check(NotEmpty())
                                      ->excludes(version);
  CLI::Option* const model = app.add_option("--model", source.files,
                                            "Read the parameters from this safetensors file, or this folder "
                                            "of Hugging Face's transformers (both of "
                                            "atollctl export)")
                                 ->excludes(version)
                                 ->excludes(checkpoint);
  app.add_option("--config", source.config,
                 "With --model: configuration file of the run (YAML). A folder has config.json instead")
      ->needs(model);
  AddComputation(app, source);
}

CLI::Option* AddTokenizer(CLI::App& app, std::string& tokenizer, std::string& pattern) {
  CLI::Option* const option = app.add_option(
      "--tokenizer", tokenizer,
      "Tokenizer of the model: bytes, or its tokenizer.json, vocab.json or .tiktoken file, or a "
      "folder with one; default: that of the run, or the one in the folder of --model");
  app.add_option("--tokenizer-pattern", pattern,
                 "How the tokenizer divides text if its file does not say so, for example gpt2")
      ->needs(option);
  return option;
}

void SettleSource(const CLI::App& command, ModelSource& source) {
  const bool data = command.get_option("--coordinator")->count() > 0;
  const bool admin = command.get_option("--admin")->count() > 0;
  if (!source.stored.newest() && data && !admin) {
    throw CLI::ValidationError(
        source.stored.version ? "--version" : "--checkpoint",
        "is read through the admin port, which could be another run's here: also give --admin HOST:PORT");
  }
  source.through_admin = !source.stored.newest() || (admin && !data);
}

}  // namespace atl
