# What a program of another project needs to be a worker. Components and their Debian packages:
#   client      libatoll-client1     the shared library, and the engine that it starts
#   client_dev  libatoll-client-dev  headers, the CMake package Atoll, atoll-client.pc, the example
#   python      python3-atoll        the Python package, over the library
# The installed files name no absolute path: the folder can be moved. The library finds the engine from its own place.
include(CMakePackageConfigHelpers)

if(TARGET atoll_client AND TARGET atoll-engine)
  list(APPEND components client client_dev)
  install(TARGETS atoll_client
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client NAMELINK_COMPONENT client_dev)
  install(TARGETS atoll-engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/atoll COMPONENT client)
  install(FILES ${PROJECT_SOURCE_DIR}/client/include/atoll/client.h ${PROJECT_SOURCE_DIR}/client/include/atoll/client.hpp
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/atoll COMPONENT client_dev)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/client/example/ COMPONENT client_dev
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libatoll-client-dev/examples)

  set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Atoll)
  set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH ATOLL_CONFIG_TO_PREFIX /prefix/${config_dir} /prefix)
  file(RELATIVE_PATH ATOLL_PC_TO_PREFIX /prefix/${pkgconfig_dir} /prefix)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/AtollConfig.cmake.in ${CMAKE_BINARY_DIR}/gen/package/AtollConfig.cmake @ONLY)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/atoll-client.pc.in ${CMAKE_BINARY_DIR}/gen/package/atoll-client.pc @ONLY)
  # Functions and fields are only added, and a library that breaks this gets another SOVERSION and major version.
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/gen/package/AtollConfigVersion.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/gen/package/AtollConfig.cmake ${CMAKE_BINARY_DIR}/gen/package/AtollConfigVersion.cmake
    DESTINATION ${config_dir} COMPONENT client_dev)
  install(FILES ${CMAKE_BINARY_DIR}/gen/package/atoll-client.pc DESTINATION ${pkgconfig_dir} COMPONENT client_dev)
  foreach(package client:libatoll-client1 client_dev:libatoll-client-dev)
    string(REPLACE ":" ";" package ${package})
    list(GET package 0 component)
    list(GET package 1 name)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE COMPONENT ${component}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright)
  endforeach()

  # The package's number is the library's SOVERSION: two of them can be installed side by side.
  set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libatoll-client1)
  set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_NAME libatoll-client-dev)
  set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_DEPENDS "libatoll-client1 (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_CLIENT_DESCRIPTION
    "Client library of Atoll, DiLoCo training as a service
Turns a training loop in any language into a worker of an Atoll run. Holds the library and the engine that it starts.")
  set(CPACK_COMPONENT_CLIENT_DEV_DESCRIPTION
    "Client library of Atoll, files for development
Headers for C and C++17, the CMake package Atoll, a pkg-config file and an example.")
endif()

if(EXISTS ${PROJECT_SOURCE_DIR}/python/atoll/__init__.py AND TARGET atoll_client)
  list(APPEND components python)
  # The same folder for every Python 3 of Debian.
  set(python_dir lib/python3/dist-packages)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/atoll DESTINATION ${python_dir} COMPONENT python
    PATTERN __pycache__ EXCLUDE PATTERN _native EXCLUDE PATTERN "*.pyc" EXCLUDE)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/python/METADATA.in ${CMAKE_BINARY_DIR}/gen/package/METADATA @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/gen/package/METADATA
    DESTINATION ${python_dir}/atoll-${PROJECT_VERSION}.dist-info COMPONENT python)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE COMPONENT python
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-atoll RENAME copyright)

  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-atoll)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3:any (>= 3.9), libatoll-client1 (>= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-torch)
  # They compile the package for the installed Pythons, and remove what was compiled.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${CMAKE_CURRENT_LIST_DIR}/python/postinst ${CMAKE_CURRENT_LIST_DIR}/python/prerm)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "Python package of Atoll, DiLoCo training as a service
Makes a training loop in Python a worker of an Atoll run, in five lines.")
endif()
