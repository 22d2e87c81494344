#ifndef ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_
#define ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_

#include "CLI/CLI.hpp"
#include "protos/transport/channel_security.h"

namespace atl {

/// The flags of every program that connects to a coordinator. Each has an environment variable, so that a
/// shell or a pod sets it once; a token is given only as a file.
inline void AddClientSecurityFlags(CLI::App& app, ClientSecurityFlags& flags) {
  const std::string group = "Certificates and tokens (docs/guides/security.md)";
  app.add_option("--tls-ca", flags.tls_ca, "Use TLS; CAs that may sign the coordinator's certificate (PEM)")
      ->envname("ATOLL_TLS_CA")
      ->group(group);
  app.add_option("--tls-cert", flags.tls_cert, "Certificate of this program (PEM), which proves its name")
      ->envname("ATOLL_TLS_CERT")
      ->group(group);
  app.add_option("--tls-key", flags.tls_key, "Private key of the certificate (PEM)")
      ->envname("ATOLL_TLS_KEY")
      ->group(group);
  app.add_option("--tls-server-name", flags.tls_server_name,
                 "Name that the coordinator's certificate must have; default: the host of its address")
      ->envname("ATOLL_TLS_SERVER_NAME")
      ->group(group);
  app.add_flag("--tls", flags.tls, "Use TLS with the CAs of this system")->group(group);
  app.add_option("--token-file", flags.token_file,
                 "File with the token in its first line; reloaded when it changes")
      ->envname("ATOLL_TOKEN_FILE")
      ->group(group);
  app.add_flag("--insecure-token", flags.insecure_token,
               "Allow sending the token without TLS. Anyone on the network path can read it")
      ->group(group);
}

}  // namespace atl

#endif  // ATOLL_PROTOS_TRANSPORT_SECURITY_FLAGS_H_
