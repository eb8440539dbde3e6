import finetune
import train


def test_the_loss_falls(tmp_path):
    path = str(tmp_path / "model.h5")
    first = train.train(1, path)
    assert train.train(40, path) < first
    assert finetune.finetune(path, 20) < first
