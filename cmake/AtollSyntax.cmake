# Preset plain: checks every file alone and generates no code. Target `objects` is every object file of ours, and no library or
# program, because the objects stay empty (syntax_only.sh).
option(ATOLL_SYNTAX_ONLY "Check every file without generating code: target `objects`" OFF)
if(ATOLL_SYNTAX_ONLY)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/syntax_only.sh)
endif()

function(_atoll_objects folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  set(objects)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "LIBRARY|EXECUTABLE" AND NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner ${folders})
    _atoll_objects(${inner} more)
    list(APPEND objects ${more})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

# Call it when all targets are there.
function(atoll_add_objects_target)
  if(NOT ATOLL_SYNTAX_ONLY)
    return()
  endif()
  _atoll_objects(${PROJECT_SOURCE_DIR} objects)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/objects.stamp
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/objects.stamp DEPENDS ${objects} VERBATIM)
  add_custom_target(objects DEPENDS ${CMAKE_BINARY_DIR}/objects.stamp)
endfunction()
