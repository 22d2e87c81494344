set(ATOLL_RENAME_NAMESPACE ${CMAKE_CURRENT_LIST_DIR}/RenameNamespace.cmake)

# atoll_proto_library(NAME protos_gen PROTOS atoll/v1/run.proto ... ROOT dir): messages and gRPC stubs from .proto files.
# The package atoll.v1 becomes the C++ namespace atl::v1: <stdlib.h> has a function called atoll.
function(atoll_proto_library)
  cmake_parse_arguments(A "" "NAME;ROOT" "PROTOS;GRPC_PROTOS" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  find_program(ATOLL_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
  # A message changes when a message that it imports does, so every file depends on all of them.
  list(TRANSFORM A_PROTOS PREPEND ${A_ROOT}/ OUTPUT_VARIABLE protos)
  list(TRANSFORM A_GRPC_PROTOS PREPEND ${A_ROOT}/ OUTPUT_VARIABLE grpc_protos)
  # protoc finds google/protobuf/*.proto beside itself, but only where /proc tells it where that is: not in every chroot.
  set(well_known)
  foreach(dir ${Protobuf_INCLUDE_DIRS})
    list(APPEND well_known -I ${dir})
  endforeach()
  set(srcs)
  foreach(proto ${A_PROTOS} ${A_GRPC_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" base ${proto})
    set(files ${out}/${base}.pb.cc ${out}/${base}.pb.h)
    set(args --cpp_out=${out})
    if(proto IN_LIST A_GRPC_PROTOS)
      list(APPEND files ${out}/${base}.grpc.pb.cc ${out}/${base}.grpc.pb.h)
      list(APPEND args --grpc_out=${out} --plugin=protoc-gen-grpc=${ATOLL_GRPC_PLUGIN})
    endif()
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc ${args} -I ${A_ROOT} ${well_known} ${A_ROOT}/${proto}
      COMMAND ${CMAKE_COMMAND} -D BASE=${out}/${base} -P ${ATOLL_RENAME_NAMESPACE}
      DEPENDS ${protos} ${grpc_protos} ${ATOLL_RENAME_NAMESPACE} COMMENT "protoc ${proto}" VERBATIM)
    list(APPEND srcs ${files})
  endforeach()
  # For what only reads the headers.
  set(headers ${srcs})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  add_custom_target(generated_headers DEPENDS ${headers} atoll_version_header)
  # Generated code is not ours: no warnings, and its headers count as system headers.
  add_library(atoll_${A_NAME} STATIC ${srcs})
  add_library(atoll::${A_NAME} ALIAS atoll_${A_NAME})
  target_include_directories(atoll_${A_NAME} SYSTEM PUBLIC ${out})
  target_link_libraries(atoll_${A_NAME} PUBLIC protobuf::libprotobuf gRPC::grpc++)
endfunction()
