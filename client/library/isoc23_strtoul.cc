// The headers of glibc 2.38 and later turn strtoul into a function of another name, which older versions do
// not have. A libstdc++.a that was compiled with them (Debian 13's, for std::random_device) needs it. This
// one lets the library load with 2.34 wherever it is built. It is local to the library. The difference:
// glibc's also reads binary numbers ("0b11") in base 0 and 2, which nothing here does.

extern "C" {

unsigned long StrtoulOfOldGlibc(const char* text, char** end, int base) noexcept __asm__("strtoul");

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name that the linker looks for
unsigned long __isoc23_strtoul(const char* text, char** end, int base) noexcept {
  return StrtoulOfOldGlibc(text, end, base);
}

}  // extern "C"
