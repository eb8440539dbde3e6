import argparse
import os

import tensorflow as tf

import amp
import data
import model


def train(steps, model_dir, loss_scale="dynamic"):
    """Trains, from the latest checkpoint if there is one, and returns the last loss."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        points = tf.placeholder(tf.float32, [None, data.FEATURES])
        labels = tf.placeholder(tf.int64, [None])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, model.logits(points))
        step = tf.train.get_or_create_global_step()
        optimizer = amp.scaled(tf.train.AdamOptimizer(0.003), loss_scale)
        train_op = optimizer.minimize(loss, global_step=step)

        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        latest = tf.train.latest_checkpoint(model_dir)
        if latest:
            saver.restore(session, latest)
        for batch in data.batches(steps):
            value, _ = session.run([loss, train_op], dict(zip((points, labels), batch)))
        saver.save(session, os.path.join(model_dir, "model.ckpt"), step)
        print(f"global step {session.run(step)}, loss {value:.2f}")
        return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--loss-scale", default="dynamic", help="dynamic, or a number")
    parser.add_argument("--model-dir", default="run")
    args = parser.parse_args()
    train(args.steps, args.model_dir, args.loss_scale)
