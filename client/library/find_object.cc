// libgcc's unwinder asks the C library which object holds an address. glibc has that function,
// _dl_find_object, since 2.35. This one lets the library load with 2.34 (RHEL 9, Amazon Linux 2023). It is
// local to the library: the unwinder is linked into the library too, and finds this function first.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* found;
};

/// The loader gives addresses as numbers.
void* Pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// dl_iterate_phdr's visitor: 1 ends the search.
int Visit(dl_phdr_info* object, std::size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  bool inside = false;
  std::uintptr_t frames = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) frames = begin;
    if (segment.p_type != PT_LOAD || search.address < begin || search.address >= begin + segment.p_memsz)
      continue;
    inside = true;
    search.found->dlfo_map_start = Pointer(begin);
    search.found->dlfo_map_end = Pointer(begin + segment.p_memsz);
  }
  if (!inside || frames == 0) return 0;
  search.found->dlfo_eh_frame = Pointer(frames);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  Search search{reinterpret_cast<std::uintptr_t>(address), found};
  return ::dl_iterate_phdr(&Visit, &search) == 1 ? 0 : -1;
}
