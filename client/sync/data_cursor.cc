#include "client/sync/data_cursor.h"

#include "common/status.h"

namespace atl {

DataCursor::DataCursor(Session* session, Replica* replica, const WorkerContext& context)
    : session_(session), replica_(replica), context_(context) {
  if (session->info().data.has_value()) partition_ = session->info().data->partition;
}

absl::StatusOr<bool> DataCursor::Follow(const RoundPlan& plan, uint64_t position) {
  const std::optional<DataPart>& data = plan.data;
  if (!data.has_value()) return false;
  if (partition_ == data->partition && position == data->samples_consumed) return false;
  const Spending spending(context_.time, TimeUse::kData);
  context_.log.Debug("goes to another part of the data",
                     {{"partition", data->partition}, {"samples_consumed", data->samples_consumed}});
  ATOLL_RETURN_IF_ERROR(replica_->SetPartition(data->partition, data->partitions));
  partition_ = data->partition;
  session_->MoveTo(*data);
  ATOLL_RETURN_IF_ERROR(replica_->Seek(data->samples_consumed));
  return true;
}

}  // namespace atl
