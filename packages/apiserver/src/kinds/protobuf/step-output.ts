/** Where a message is written in parts. */

import { Pace, type Steps } from '@coracle/apimachinery/meta/steps';
import protobuf from 'protobufjs/minimal.js';

/** What has been written so far: finished parts, and a writer that is still open. */
export class StepOutput {
  readonly parts: Uint8Array[] = [];
  /** Bytes of the finished parts. */
  length = 0;
  writer = protobuf.Writer.create();
  readonly #pace: Pace;

  constructor(pace: Pace = new Pace()) {
    this.#pace = pace;
  }

  /** Says that so many nodes were written; true when others should be let in. */
  due(nodes: number): boolean {
    if (!this.#pace.due(nodes)) return false;
    this.close();
    return true;
  }

  /** Finishes the part in hand. */
  close(): void {
    if (this.writer.len === 0) return;
    this.#add(this.writer.finish());
    this.writer = protobuf.Writer.create();
  }

  /** A message behind its length, whose tag has been written. */
  *nested(write: (inner: StepOutput) => Steps<void>): Steps<void> {
    const inner = new StepOutput(this.#pace);
    yield* write(inner);
    inner.close();
    this.writer.uint32(inner.length);
    this.close();
    for (const part of inner.parts) this.#add(part);
  }

  #add(part: Uint8Array): void {
    this.parts.push(part);
    this.length += part.length;
  }
}
