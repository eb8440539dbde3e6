import pytest

import train


@pytest.mark.parametrize("loss_scale", ["dynamic", "1024"])
def test_the_loss_falls(loss_scale, tmp_path):
    first = train.train(1, str(tmp_path), loss_scale)
    assert train.train(40, str(tmp_path), loss_scale) < first  # continues from the checkpoint
