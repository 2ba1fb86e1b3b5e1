"""Tests of an exam: pytest --exam gate.toml."""


def test_the_new_version_is_good_enough(exam_gate):
    exam_gate.check()


def test_dense_retrieval_covers_a_fifth_of_the_exam(exam):
    exam.grades().gate(["Cover@20>=0.2"], systems=["dense"]).check()
