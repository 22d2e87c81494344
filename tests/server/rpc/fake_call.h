#ifndef ATOLL_TESTS_SERVER_RPC_FAKE_CALL_H_
#define ATOLL_TESTS_SERVER_RPC_FAKE_CALL_H_

#include <future>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/task_queue.h"
#include "grpcpp/support/server_callback.h"
#include "gtest/gtest.h"

// The calls that gRPC would hand to a reactor, in-process: the same order of reactions, on a thread of their
// own, and a failure for whatever a reactor must not do. Nothing of gRPC's library runs, so ThreadSanitizer
// sees all of it.

namespace atl {

/// Counts what must end before OnDone, as gRPC does: Finish, and the reactions in progress.
class FakeCallBase {
 public:
  /// Waits for OnDone and returns the status that the call was finished with.
  grpc::Status WaitUntilDone() {
    done_.get_future().wait();
    reactions_.Drain();
    MutexLock lock(&mutex_);
    return status_;
  }

  /// The client goes away: calls OnCancel on the calling thread, unless the call is done.
  void Cancel() {
    if (!Enter()) return;
    reactor_->OnCancel();
    Leave();
  }

 protected:
  FakeCallBase() : reactions_("fake-grpc") {}
  ~FakeCallBase() = default;

  /// A reaction begins: OnDone waits for it. False when OnDone has been called or is due.
  bool Enter() {
    MutexLock lock(&mutex_);
    if (pending_ == 0) return false;
    ++pending_;
    return true;
  }
  void Leave() {
    {
      MutexLock lock(&mutex_);
      if (--pending_ > 0) return;
    }
    EXPECT_TRUE(reactions_.Post([this] {
      reactor_->OnDone();
      done_.set_value();
    }));
  }
  void FinishCall(grpc::Status status) {
    {
      MutexLock lock(&mutex_);
      EXPECT_FALSE(finished_) << "finished twice";
      finished_ = true;
      status_ = std::move(status);
    }
    Leave();
  }
  /// An operation begins, whose reaction will be `react`.
  template <typename React>
  void Start(bool* outstanding, React react) {
    {
      MutexLock lock(&mutex_);
      EXPECT_FALSE(*outstanding) << "two operations of a kind at once";
      EXPECT_FALSE(finished_) << "an operation on a call that was finished";
      *outstanding = true;
      ++pending_;
    }
    EXPECT_TRUE(reactions_.Post([this, outstanding, react = std::move(react)] {
      {
        MutexLock lock(&mutex_);
        *outstanding = false;
      }
      react();
      Leave();
    }));
  }

  grpc::internal::ServerReactor* reactor_ = nullptr;
  mutable Mutex mutex_;

 private:
  int pending_ ABSL_GUARDED_BY(mutex_) = 1;  // Finish
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  std::promise<void> done_;
  TaskQueue reactions_;
};

/// A server stream's call.
template <typename Message>
class FakeWriter final : public FakeCallBase, public grpc::ServerCallbackWriter<Message> {
 public:
  void Bind(grpc::ServerWriteReactor<Message>* reactor) {
    reactor_ = reactor;
    stream_ = reactor;
    this->BindReactor(reactor);
  }
  std::vector<Message> written() const {
    MutexLock lock(&mutex_);
    return written_;
  }

  void Finish(grpc::Status status) override { FinishCall(std::move(status)); }
  void SendInitialMetadata() override {}
  void Write(const Message* message, grpc::WriteOptions) override {
    {
      MutexLock lock(&mutex_);
      written_.push_back(*message);
    }
    Start(&writing_, [this] { stream_->OnWriteDone(true); });
  }
  void WriteAndFinish(const Message*, grpc::WriteOptions, grpc::Status) override {
    ADD_FAILURE() << "not used by our reactors";
  }

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  grpc::ServerWriteReactor<Message>* stream_ = nullptr;
  bool writing_ = false;
  std::vector<Message> written_ ABSL_GUARDED_BY(mutex_);
};

/// A client stream's call: the test's messages, then no more until Finish.
template <typename Message>
class FakeReader final : public FakeCallBase, public grpc::ServerCallbackReader<Message> {
 public:
  explicit FakeReader(std::vector<Message> messages) : messages_(std::move(messages)) {}

  void Bind(grpc::ServerReadReactor<Message>* reactor) {
    reactor_ = reactor;
    stream_ = reactor;
    this->BindReactor(reactor);
  }

  /// As gRPC: a read that is outstanding fails.
  void Finish(grpc::Status status) override {
    bool outstanding = false;
    {
      MutexLock lock(&mutex_);
      outstanding = std::exchange(waiting_, false);
    }
    FinishCall(std::move(status));
    if (!outstanding) return;
    stream_->OnReadDone(false);
    Leave();
  }
  void SendInitialMetadata() override {}
  void Read(Message* message) override {
    bool have = false;
    {
      MutexLock lock(&mutex_);
      have = next_ < messages_.size();
      if (have) *message = messages_[next_++];
    }
    if (have) {
      Start(&reading_, [this] { stream_->OnReadDone(true); });
      return;
    }
    EXPECT_TRUE(Enter()) << "a read on a call that was finished";
    MutexLock lock(&mutex_);
    waiting_ = true;
  }

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  grpc::ServerReadReactor<Message>* stream_ = nullptr;
  const std::vector<Message> messages_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ = false;
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_RPC_FAKE_CALL_H_
