# cmake -D OUT=files.cc -D "FILES=a.html;b.css" -D FOLDER=dir -P EmbedFiles.cmake
# Writes a source file with the bytes of the files and the table that HEADER speaks of (default: server/web/files.h), as
# elements of STRUCT that FUNCTION returns. The file that is called index.html is served as "/".
if(NOT DEFINED HEADER)
  set(HEADER server/web/files.h)
  set(STRUCT WebFile)
  set(FUNCTION WebFiles)
endif()
set(arrays "")
set(rows "")
set(count 0)
foreach(name IN LISTS FILES)
  file(READ ${FOLDER}/${name} hex HEX)
  file(SHA256 ${FOLDER}/${name} sha256)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  cmake_path(GET name EXTENSION LAST_ONLY extension)
  if(extension STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(extension STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(extension STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(extension STREQUAL ".svg")
    set(type "image/svg+xml")
  else()
    message(FATAL_ERROR "${name}: no content type is known for it")
  endif()
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr unsigned char kFile${count}[] = {\n${hex}};\n")
  string(APPEND rows "    {\"${path}\", \"${type}\", \"${sha256}\",\n"
    "     {reinterpret_cast<const char*>(kFile${count}), ${size}}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "// Made from the files of the web page; do not edit.
#include \"${HEADER}\"

namespace atl {
namespace {

${arrays}
const ${STRUCT} kFiles[] = {
${rows}};

}  // namespace

std::span<const ${STRUCT}> ${FUNCTION}() { return kFiles; }

}  // namespace atl
")
