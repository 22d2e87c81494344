// Uploads while the disk is slow to sync.
#include <latch>

#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

class SlowDiskTest : public RpcFixture {
 protected:
  struct Upload {
    std::unique_ptr<grpc::ClientContext> context = Context();
    v1::PushReply reply;
    std::unique_ptr<grpc::ClientWriter<v1::PushChunk>> writer;
  };
  /// Announces `bytes`, sends nothing yet.
  std::unique_ptr<Upload> Begin(uint64_t bytes) {
    auto upload = std::make_unique<Upload>();
    upload->writer = data_->Push(upload->context.get(), &upload->reply);
    EXPECT_TRUE(upload->writer->Write(PushHeaderOf(bytes)));
    return upload;
  }
};

TEST_F(SlowDiskTest, ChunksOfOthersGoOnWhileUploadsAreSynced) {
  RpcServerOptions options = Options();
  options.upload_threads = 1;
  options.sync_threads = 2;
  std::latch disk(1);  // answers no sync before
  std::atomic<int> syncing{0};
  coordinator_.on_push_finish = [&]() -> absl::StatusOr<PushResult> {
    ++syncing;
    disk.wait();
    return PushResult{{.head = Version(7), .arrived = 1, .expected = 2}};
  };
  Serve(options);
  // More than upload threads: complete, and waiting for the disk.
  std::vector<std::unique_ptr<Upload>> whole;
  for (int i = 0; i < 3; ++i) {
    whole.push_back(Begin(3));
    ASSERT_TRUE(whole.back()->writer->Write(PushChunkOf(0, "abc")));
    ASSERT_TRUE(whole.back()->writer->WritesDone());
  }
  ASSERT_TRUE(Eventually([&] { return syncing == 2; })) << "as many at once as there are threads for it";
  auto other = Begin(6);
  ASSERT_TRUE(other->writer->Write(PushChunkOf(0, "def")));
  EXPECT_TRUE(Eventually([&] { return coordinator_.pushed().size() == 3 * 3 + 3; }))
      << "its chunk waits behind somebody's sync";
  ASSERT_TRUE(other->writer->Write(PushChunkOf(3, "ghi")));
  ASSERT_TRUE(other->writer->WritesDone());
  EXPECT_TRUE(Eventually([&] { return coordinator_.pushed().size() == 3 * 3 + 6; }));
  EXPECT_EQ(syncing, 2) << "nothing was synced meanwhile";
  disk.count_down();
  whole.push_back(std::move(other));
  for (const auto& upload : whole) {
    EXPECT_TRUE(upload->writer->Finish().ok());
    EXPECT_EQ(upload->reply.head_version(), 7u);
  }
  EXPECT_EQ(syncing, 4);
}

}  // namespace
}  // namespace atl
