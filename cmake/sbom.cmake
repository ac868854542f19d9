# gen/edgewise.spdx.json: components of the program and libraries that it links or opens, as SPDX 2.3.  The versions of
# libraries are those found at configure time.
set(EW_SBOM_PACKAGES)
set(EW_SBOM_RELATIONS)

# ew_sbom_add(NAME VERSION LICENSE RELATION [SHA256])
function(ew_sbom_add name version license relation)
  set(sum)
  if(ARGC GREATER 4)
    set(sum ",\n     \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"${ARGV4}\"}]")
  endif()
  string(APPEND EW_SBOM_PACKAGES ",\n    {\"SPDXID\": \"SPDXRef-${name}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\",\n"
    "     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"${license}\",\n"
    "     \"licenseDeclared\": \"${license}\", \"copyrightText\": \"NOASSERTION\"${sum}}")
  string(APPEND EW_SBOM_RELATIONS ",\n    {\"spdxElementId\": \"SPDXRef-edgewise\", \"relationshipType\": \"${relation}\",\n"
    "     \"relatedSpdxElement\": \"SPDXRef-${name}\"}")
  set(EW_SBOM_PACKAGES "${EW_SBOM_PACKAGES}" PARENT_SCOPE)
  set(EW_SBOM_RELATIONS "${EW_SBOM_RELATIONS}" PARENT_SCOPE)
endfunction()

find_program(EW_PKG_CONFIG pkg-config)
mark_as_advanced(EW_PKG_CONFIG)
set(link DYNAMIC_LINK)
if(EW_STATIC)
  set(link STATIC_LINK)
endif()
# ew_sbom_library(FEATURE PACKAGE LICENSE): a library, by its pkg-config name.
macro(ew_sbom_library feature package license)
  if(EW_HAVE_${feature})
    set(version NOASSERTION)
    if(EW_PKG_CONFIG)
      execute_process(COMMAND ${EW_PKG_CONFIG} --modversion ${package} OUTPUT_VARIABLE found
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
      if(status EQUAL 0)
        set(version ${found})
      endif()
    endif()
    ew_sbom_add(${package} ${version} ${license} ${link})
  endif()
endmacro()

ew_sbom_library(ONNX libprotobuf-c BSD-2-Clause)
ew_sbom_library(IMAGE libpng libpng-2.0)
ew_sbom_library(IMAGE libturbojpeg "IJG AND BSD-3-Clause AND Zlib")
ew_sbom_library(STORE sqlite3 blessing)
ew_sbom_library(ZLIB zlib Zlib)
ew_sbom_library(SERVE libmicrohttpd LGPL-2.1-or-later)
ew_sbom_library(CURL libcurl curl)
foreach(library avformat avcodec avutil swscale)
  ew_sbom_library(FFMPEG lib${library} LGPL-2.1-or-later)
endforeach()
# What the modules link; their versions and licences are the installed ones'.
if(EW_HAVE_MPI)
  ew_sbom_add(mpi NOASSERTION NOASSERTION DYNAMIC_LINK)
endif()
if(EW_HAVE_CUDA)
  ew_sbom_add(cudart NOASSERTION NOASSERTION STATIC_LINK)
  ew_sbom_add(cudnn NOASSERTION NOASSERTION DYNAMIC_LINK)
  ew_sbom_add(cublasLt NOASSERTION NOASSERTION DYNAMIC_LINK)
endif()
if(EW_STATIC)
  ew_sbom_add(glibc NOASSERTION LGPL-2.1-or-later STATIC_LINK)
endif()
if(EW_HAVE_CHARTS)
  ew_sbom_add(echarts ${EW_CHARTS_VERSION} Apache-2.0 CONTAINS ${EW_CHARTS_SHA256})
  ew_sbom_add(zrender ${EW_ZRENDER_VERSION} BSD-3-Clause CONTAINS ${EW_ZRENDER_SHA256})
  ew_sbom_add(tslib ${EW_TSLIB_VERSION} 0BSD CONTAINS ${EW_TSLIB_SHA256})
endif()

# Reproducible: the creation time is SOURCE_DATE_EPOCH, else that of the last commit.
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch)
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT epoch)
  set(epoch 0)
endif()
set(outer_epoch "$ENV{SOURCE_DATE_EPOCH}")
set(ENV{SOURCE_DATE_EPOCH} ${epoch})
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)
if(outer_epoch STREQUAL "")
  unset(ENV{SOURCE_DATE_EPOCH})
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gen/edgewise.spdx.json @ONLY CONTENT [[{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "edgewise-@PROJECT_VERSION@",
  "documentNamespace": "urn:edgewise:spdx:@PROJECT_VERSION@:@epoch@",
  "creationInfo": {"created": "@created@", "creators": ["Tool: edgewise-build-@PROJECT_VERSION@"]},
  "packages": [
    {"SPDXID": "SPDXRef-edgewise", "name": "edgewise", "versionInfo": "@PROJECT_VERSION@",
     "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": "Apache-2.0",
     "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}@EW_SBOM_PACKAGES@
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
     "relatedSpdxElement": "SPDXRef-edgewise"}@EW_SBOM_RELATIONS@
  ]
}
]])
