#ifndef ATOLL_TESTS_SERVER_WEB_RAW_HTTP_H_
#define ATOLL_TESTS_SERVER_WEB_RAW_HTTP_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/file_descriptor.h"

namespace atl {

/// A connection to 127.0.0.1, which gives up reading after 20 s.
inline FileDescriptor ConnectTo(uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    socket.Reset();
  return socket;
}

inline void SendText(const FileDescriptor& socket, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

/// What comes until the other side closes.
inline std::string ReadAll(const FileDescriptor& socket) {
  std::string answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(socket.get(), buffer, sizeof(buffer))) > 0)
    answer.append(buffer, static_cast<size_t>(got));
  return answer;
}

/// The answer to exactly these bytes. They should ask for the connection to be closed.
inline std::string RawExchange(uint16_t port, const std::string& bytes) {
  const FileDescriptor socket = ConnectTo(port);
  SendText(socket, bytes);
  return ReadAll(socket);
}

inline int StatusIn(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

inline std::string BodyIn(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_WEB_RAW_HTTP_H_
