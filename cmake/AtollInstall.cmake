# cmake --install, and the Debian packages:
#   atoll-coordinator   atoll-coordinator, atollctl, atoll-data
#   atoll-worker        atoll-worker, atoll-model (the only ones that need LibTorch)
#   libatoll-client1, libatoll-client-dev, python3-atoll   AtollInstallClient.cmake
include(GNUInstallDirs)

set(ATOLL_COMPONENT_coordinator atoll-coordinator atollctl atoll-data)
set(ATOLL_COMPONENT_worker atoll-worker atoll-model)
set(components)
foreach(component coordinator worker)
  foreach(program ${ATOLL_COMPONENT_${component}})
    if(TARGET ${program})
      install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
      list(APPEND components ${component})
    endif()
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/atoll-${component} RENAME copyright)
endforeach()
list(REMOVE_DUPLICATES components)

set(coordinator_doc ${CMAKE_INSTALL_DATADIR}/doc/atoll-coordinator)
if(EXISTS ${PROJECT_SOURCE_DIR}/README.md)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${coordinator_doc} COMPONENT coordinator)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${coordinator_doc} COMPONENT coordinator
  FILES_MATCHING PATTERN "*.md")
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/examples)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${coordinator_doc} COMPONENT coordinator
    FILES_MATCHING PATTERN "*.yaml")
endif()
include(AtollInstallClient)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME atoll)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Atoll authors <atoll@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_NAME atoll-coordinator)
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME atoll-worker)
# Without it LibTorch multiplies matrices with the reference BLAS, some hundred times slower.
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS libopenblas0-openmp)
set(CPACK_COMPONENT_COORDINATOR_DESCRIPTION
  "Coordinator and tools of Atoll, DiLoCo training as a service
Holds the global parameters of a training run, averages what the workers send and publishes new versions.
With atollctl, to look at and steer a run, and atoll-data, which makes token files.")
set(CPACK_COMPONENT_WORKER_DESCRIPTION
  "Worker of Atoll, DiLoCo training as a service
Trains the model with LibTorch on its own data and exchanges compressed pseudo-gradients with a coordinator.")
include(CPack)
