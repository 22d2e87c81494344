#include "storage/record.h"

#include <utility>

#include "common/status.h"
#include "storage/record_fields.h"
#include "storage/record_reader.h"
#include "storage/record_writer.h"

namespace atl {

StoredEntry VersionZero(const RunIdentity& identity, const FragmentLayout& layout,
                        const FragmentTensorsView& tensors) {
  return {.fragment = layout.id,
          .epoch = identity.epoch,
          .elements = layout.elements,
          .state_vectors = static_cast<uint32_t>(tensors.state.size()),
          .versions = {Version(0)}};
}

template <Record T>
std::string EncodeRecord(const T& record) {
  RecordWriter writer(kRecordKindOf<T>);
  record_fields::Fields(writer, record);
  return writer.Finish();
}

template <Record T>
absl::StatusOr<T> DecodeRecord(std::string_view key, std::string_view bytes) {
  RecordReader reader(key, kRecordKindOf<T>, bytes);
  T record;
  record_fields::Fields(reader, record);
  ATOLL_RETURN_IF_ERROR(reader.Finish());
  return record;
}

#define ATOLL_INSTANTIATE_RECORD(T)            \
  template std::string EncodeRecord(const T&); \
  template absl::StatusOr<T> DecodeRecord(std::string_view, std::string_view)

ATOLL_INSTANTIATE_RECORD(RunIdentity);
ATOLL_INSTANTIATE_RECORD(Manifest);
ATOLL_INSTANTIATE_RECORD(ConfigEntry);
ATOLL_INSTANTIATE_RECORD(WorkerEntry);
ATOLL_INSTANTIATE_RECORD(PartitionEntry);
ATOLL_INSTANTIATE_RECORD(HeadEntry);
ATOLL_INSTANTIATE_RECORD(StoredEntry);
ATOLL_INSTANTIATE_RECORD(RoundRecord);
ATOLL_INSTANTIATE_RECORD(Contribution);
ATOLL_INSTANTIATE_RECORD(EvaluationEntry);
ATOLL_INSTANTIATE_RECORD(ConfirmationEntry);
ATOLL_INSTANTIATE_RECORD(EventEntry);
ATOLL_INSTANTIATE_RECORD(ControlEntry);

#undef ATOLL_INSTANTIATE_RECORD

}  // namespace atl
