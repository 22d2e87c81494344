#!/usr/bin/env python3
"""The test of class sizes can fail: each rule, broken once and kept once."""
import unittest

import class_size


def class_of(methods, access="public", kind="class", name="Big"):
    body = "".join(f"  void M{i}(int a = 0) const;\n" for i in range(methods))
    return f"namespace atl {{\n{kind} {name} {{\n {access}:\n  {name}();\n  ~{name}();\n{body}}};\n}}  // namespace atl\n"


def check(**files):
    """Keyword a_h stands for core/a.h, b_cc for core/b.cc."""
    return class_size.check({f"core/{name.replace('_', '.')}": text for name, text in files.items()})


class ClassSizeTest(unittest.TestCase):
    def methods(self, body, kind="class", access="public:"):
        classes, _ = class_size.parse("core/a.h", f"namespace atl {{\n{kind} A {{\n {access}\n{body}\n}};\n}}\n")
        return classes[0].public

    def test_public_methods(self):
        self.assertEqual(check(a_h=class_of(25)), {})
        self.assertEqual(list(check(a_h=class_of(26))), ["Big"])
        self.assertEqual(list(check(a_cc=class_of(26))), ["Big"])
        self.assertEqual(check(a_h=class_of(26, access="private")), {})
        self.assertEqual(list(check(a_h=class_of(26, access="public", kind="struct"))), ["Big"])
        self.assertEqual(check(a_h=class_of(20, name="One") + class_of(20, name="Two")), {})

    def test_what_counts(self):
        for line in ["int f();", "static absl::StatusOr<std::unique_ptr<A>> Create(const Options& o);",
                     "const std::map<int, std::function<void(int)>>& f() const { return f_; }",
                     "template <typename T> T Get(absl::Span<const T> s = {}) { if (s.empty()) { return T{}; } return s[0]; }",
                     "bool operator<(const A& other) const;", "virtual void f() = 0;", "int f() ABSL_LOCKS_EXCLUDED(mutex_);",
                     "[[nodiscard]] bool f() const noexcept;", "void operator()(int x);", "explicit operator bool() const;",
                     "friend int g(); int f();", "// public:\n void f(); // void g();",
                     "struct Part { int g(); };\n int f();", 'std::string f() { return "}; int g();"; }']:
            with self.subTest(line=line):
                self.assertEqual(len(self.methods(line)), 1)

    def test_what_does_not_count(self):
        for line in ["explicit A(int x) : x_{x} {}", "virtual ~A() = default;", "A& operator=(A&& other);",
                     "bool operator==(const A&) const = default;", "void f() = delete;", "void f() override;",
                     "void f(int a) const final { g(a); }", "int x ABSL_GUARDED_BY(mutex_) = 0;", "int x_{f(3)};",
                     "std::function<void(int)> callback;", "std::vector<int> x = Make(3);", "using F = void (*)(int);",
                     "friend bool operator==(const A&, const A&) = default;", "static_assert(sizeof(int) == 4);",
                     "enum class E { kOne = 1, kTwo };", "int values[Max(3, 4)] = {1, 2};", "class Part;",
                     "private:\n int f();", "void g() = delete;\n protected:\n int f() { return 1; }"]:
            with self.subTest(line=line):
                self.assertEqual(self.methods(line), [])
        self.assertEqual(self.methods("int f();", access=""), [])
        self.assertEqual(self.methods("int f();", kind="struct", access=""), ["f"])

    def test_one_header_and_one_source(self):
        header = "namespace atl {\nclass A {\n public:\n  int f();\n  struct Part {\n    int g();\n  };\n};\n}\n"
        own = '#include "core/a.h"\nnamespace atl {\nint A::f() { return 1; }\nint A::Part::g() { return 2; }\n}\n'
        self.assertEqual(check(a_h=header, a_cc=own), {})
        self.assertEqual(list(check(a_h=header, a_cc=own, other_cc='#include "core/a.h"\nvoid A::h() {\n}\n')), ["A"])
        self.assertEqual(list(check(a_h=header, other_cc="absl::StatusOr<B::C> A::f(D::E e) {\n}\n")), ["A"])
        self.assertEqual(list(check(a_h=header, other_cc="int A::Part::g() {\n}\n")), ["A::Part"])
        self.assertEqual(list(check(a_h=header, other_cc="A::A(int x) : x_(x) {\n}\n")), ["A"])
        self.assertEqual(check(a_h=header, other_cc="A::Part Make(int x) { return A::Make(x); }\nint x = A::g(3);\n"), {})

    def test_the_nearest_class_of_a_name_is_meant(self):
        one = "class A {\n public:\n  int f();\n};\n"
        self.assertEqual(check(a_h=one, b_cc=one + "int A::f() {\n}\n"), {})
        self.assertEqual(check(a_h=one, b_h=one, b_cc='#include "core/b.h"\nint A::f() {\n}\n'), {})

    def test_two_implementations_at_link_time(self):
        for header, sources in class_size.LINKED.items():
            files = {header: "class Mutex {\n public:\n  void Lock();\n};\n"}
            define = f'#include "{header}"\nvoid Mutex::Lock() {{\n}}\n'
            self.assertEqual(class_size.check(files | {source: define for source in sources}), {})
            self.assertNotEqual(class_size.check(files | {"common/third.cc": define}), {})

    def test_known_classes_may_only_shrink(self):
        large = check(a_h=class_of(26))
        self.assertNotEqual(class_size.violations_of(large, set()), [])
        self.assertEqual(class_size.violations_of(large, {"Big"}), [])
        self.assertNotEqual(class_size.violations_of({}, {"Big"}), [])


if __name__ == "__main__":
    unittest.main()
