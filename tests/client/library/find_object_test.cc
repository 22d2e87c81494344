// The library's own _dl_find_object against glibc's, where this machine's glibc has one.
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

using FindObject = int (*)(void*, dl_find_object*);

void InThisProgram() {}

TEST(FindObjectTest, FindsTheSameTablesAsTheCLibrary) {
  const auto expected = reinterpret_cast<FindObject>(dlsym(RTLD_NEXT, "_dl_find_object"));
  if (expected == nullptr) GTEST_SKIP() << "the C library has no _dl_find_object";
  const std::vector<void*> addresses = {
      reinterpret_cast<void*>(&InThisProgram),  // the program
      dlsym(RTLD_DEFAULT, "malloc"),            // the C library, or a sanitizer
      dlsym(RTLD_DEFAULT, "qsort"),             // the C library
      dlsym(RTLD_DEFAULT, "__cxa_throw"),       // the C++ library
      dlsym(RTLD_DEFAULT, "_ZSt4cout"),         // data of it
  };
  for (void* const address : addresses) {
    ASSERT_NE(address, nullptr);
    dl_find_object ours = {}, theirs = {};
    ASSERT_EQ(expected(address, &theirs), 0);
    ASSERT_EQ(_dl_find_object(address, &ours), 0);
    EXPECT_EQ(ours.dlfo_eh_frame, theirs.dlfo_eh_frame);
    EXPECT_LE(ours.dlfo_map_start, address);
    EXPECT_GT(ours.dlfo_map_end, address);
  }
}

TEST(FindObjectTest, FindsNoObjectForOtherAddresses) {
  const std::vector<char> heap(1 << 20);
  int stack = 0;
  for (const void* address : {static_cast<const void*>(heap.data()), static_cast<const void*>(&stack),
                              static_cast<const void*>(nullptr)}) {
    dl_find_object found = {};
    EXPECT_EQ(_dl_find_object(const_cast<void*>(address), &found), -1);
  }
}

}  // namespace
