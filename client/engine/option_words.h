#ifndef ATOLL_CLIENT_ENGINE_OPTION_WORDS_H_
#define ATOLL_CLIENT_ENGINE_OPTION_WORDS_H_

#include <string>
#include <string_view>

namespace atl {

/// Messages of the worker's libraries name the flags of a command line: "give --wait-forever". The users of
/// the client library have options instead: "give option wait-forever". A flag of another program stays:
/// "the coordinator's --tls-ca", "atollctl --tls-cert", and everything between backquotes.
std::string WithOptionWords(std::string_view message);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_OPTION_WORDS_H_
