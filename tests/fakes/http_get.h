#ifndef ATOLL_TESTS_FAKES_HTTP_GET_H_
#define ATOLL_TESTS_FAKES_HTTP_GET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "common/file_descriptor.h"

namespace atl {

/// A connection to this port of 127.0.0.1; invalid when nobody listens there.
inline FileDescriptor ConnectTo(uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return {};
  return socket;
}

/// The whole answer (head and body) to GET `path` from 127.0.0.1; empty when nobody answers.
inline std::string HttpGet(uint16_t port, const std::string& path) {
  const FileDescriptor socket = ConnectTo(port);
  if (!socket.valid()) return "";
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  if (::write(socket.get(), request.data(), request.size()) != static_cast<ssize_t>(request.size()))
    return "";
  std::string answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(socket.get(), buffer, sizeof(buffer))) > 0)
    answer.append(buffer, static_cast<size_t>(got));
  return answer;
}

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_HTTP_GET_H_
