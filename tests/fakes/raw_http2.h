#ifndef ATOLL_TESTS_FAKES_RAW_HTTP2_H_
#define ATOLL_TESTS_FAKES_RAW_HTTP2_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "common/file_descriptor.h"
#include "gtest/gtest.h"

namespace atl {

/// One frame of HTTP/2 (RFC 9113, 4.1).
inline std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + payload;
}

inline std::string Number(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

/// RST_STREAM with an error code of RFC 9113, 7.
inline std::string ResetStream(uint32_t stream, uint32_t code) {
  return Http2Frame(3, 0, stream, Number(code));
}

/// The whole answer of a web server: ":status" as a literal with the name of entry 8 of HPACK's static table.
inline std::string HttpAnswer(uint32_t stream, const std::string& status) {
  constexpr uint8_t kEndStreamAndHeaders = 5;
  return Http2Frame(1, kEndStreamAndHeaders, stream, std::string("\x08\x03", 2) + status);
}

constexpr uint8_t kEndStream = 1;

/// HEADERS of a gRPC answer, without grpc-status: ":status 200" is entry 8 of HPACK's static table,
/// "content-type" the name of entry 31. With kEndStream they are the whole answer ("trailers only").
inline std::string GrpcHeaders(uint32_t stream, uint8_t flags = 0) {
  return Http2Frame(1, flags | 4, stream, std::string("\x88\x0f\x10\x10") + "application/grpc");
}

/// HEADERS that end a stream, with one field.
inline std::string Trailer(uint32_t stream, const std::string& name, const std::string& value) {
  const auto text = [](const std::string& of) { return std::string(1, static_cast<char>(of.size())) + of; };
  return Http2Frame(1, kEndStream | 4, stream, std::string(1, '\0') + text(name) + text(value));
}

/// A server that speaks as much HTTP/2 as it takes to answer each call with chosen bytes, as a proxy or a
/// dying server would. One connection at a time; an empty answer hangs up.
class RawHttp2Server {
 public:
  using Answer = std::function<std::string(uint32_t stream)>;

  explicit RawHttp2Server(Answer answer) : answer_(std::move(answer)) {
    listening_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(where);
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    EXPECT_EQ(::bind(listening_.get(), address, size), 0);
    EXPECT_EQ(::listen(listening_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listening_.get(), address, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~RawHttp2Server() {
    stopping_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }

 private:
  bool Readable(int fd) const {
    pollfd watched = {.fd = fd, .events = POLLIN, .revents = 0};
    while (!stopping_) {
      if (::poll(&watched, 1, 20) > 0) return true;
    }
    return false;
  }

  /// Exactly so many bytes; empty: the connection is over.
  std::string Read(int fd, size_t size) const {
    std::string bytes(size, '\0');
    for (size_t got = 0; got < size;) {
      if (!Readable(fd)) return "";
      const ssize_t more = ::recv(fd, bytes.data() + got, size - got, 0);
      if (more <= 0) return "";
      got += static_cast<size_t>(more);
    }
    return bytes;
  }

  void Run() {
    while (Readable(listening_.get())) {
      const FileDescriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.valid()) Serve(connection.get());
    }
  }

  void Serve(int fd) const {
    constexpr size_t kPreface = 24;
    if (Read(fd, kPreface).empty()) return;
    Send(fd, Http2Frame(4, 0, 0, ""));
    while (true) {
      const std::string head = Read(fd, 9);
      if (head.empty()) return;
      const auto byte = [&head](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(head[i])); };
      const size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
      const uint32_t stream = (byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)) & 0x7fffffff;
      const std::string payload = size == 0 ? "" : Read(fd, size);
      if (payload.size() != size) return;
      if (head[3] == 4 && (head[4] & 1) == 0) Send(fd, Http2Frame(4, 1, 0, ""));       // SETTINGS
      if (head[3] == 6 && (head[4] & 1) == 0) Send(fd, Http2Frame(6, 1, 0, payload));  // PING
      if (head[3] != 1) continue;                                                      // HEADERS: a call
      const std::string answer = answer_(stream);
      if (answer.empty()) return;
      Send(fd, answer);
    }
  }

  static void Send(int fd, const std::string& bytes) { ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  const Answer answer_;
  FileDescriptor listening_;
  std::string address_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_RAW_HTTP2_H_
