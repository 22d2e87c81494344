#ifndef ATOLL_COMMON_DID_YOU_MEAN_H_
#define ATOLL_COMMON_DID_YOU_MEAN_H_

#include <string>
#include <string_view>
#include <vector>

namespace atl {

/// The candidate that the user probably meant: the one with the smallest edit distance (insertions,
/// deletions, substitutions, swaps of neighbours), if the distance is at most a third of the word, rounded
/// up. Otherwise empty.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace atl

#endif  // ATOLL_COMMON_DID_YOU_MEAN_H_
