#ifndef ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_
#define ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_

#include "CLI/CLI.hpp"
#include "protos/transport/channel_security.h"

namespace atoll {

/// The flags of every program that connects to a coordinator. Each has an environment variable, so that a
/// shell or a pod says it once; a token is only ever named by its file.
inline void AddClientSecurityFlags(CLI::App& app, ClientSecurityFlags& flags) {
  const std::string group = "Certificates and tokens (docs/operations.md)";
  app.add_option("--tls-ca", flags.tls_ca,
                 "Use TLS: the CAs that may have signed the coordinator's certificate (PEM)")
      ->envname("ATOLL_TLS_CA")
      ->group(group);
  app.add_option("--tls-cert", flags.tls_cert, "Our own certificate (PEM), which says who we are")
      ->envname("ATOLL_TLS_CERT")
      ->group(group);
  app.add_option("--tls-key", flags.tls_key, "Its private key (PEM)")->envname("ATOLL_TLS_KEY")->group(group);
  app.add_option("--tls-server-name", flags.tls_server_name,
                 "The name that the coordinator's certificate must be for; default: the one we connect to")
      ->envname("ATOLL_TLS_SERVER_NAME")
      ->group(group);
  app.add_flag("--tls", flags.tls, "Use TLS with the CAs that this system trusts")->group(group);
  app.add_option("--token-file", flags.token_file,
                 "File whose first line is our token; read again when it changes")
      ->envname("ATOLL_TOKEN_FILE")
      ->group(group);
  app.add_flag("--insecure-token", flags.insecure_token,
               "Send the token in plain text to another machine: whoever listens on the way has it then")
      ->group(group);
}

}  // namespace atoll

#endif  // ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_
