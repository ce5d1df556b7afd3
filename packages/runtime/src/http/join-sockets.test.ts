import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../clock/clock.ts';
import { joinSockets } from './join-sockets.ts';
import type { MessageSocket } from './seam.ts';

const MIB = 1024 * 1024;

/** One end, moved by hand: what was sent to it waits in `buffered` until it is taken. */
function end(how: { readonly pausable: boolean }) {
  let onMessage: (data: Uint8Array, binary: boolean) => void = () => {};
  let onClose: (code: number, reason: string) => void = () => {};
  const state = {
    sent: [] as (Uint8Array | string)[],
    buffered: 0,
    paused: false,
    closed: undefined as number | undefined,
  };
  const socket: MessageSocket = {
    protocol: '',
    send(data) {
      state.sent.push(data);
      state.buffered += data.length;
    },
    get buffered() {
      return state.buffered;
    },
    close(code = 1000, reason = '') {
      if (state.closed !== undefined) return;
      state.closed = code;
      onClose(code, reason);
    },
    ...(how.pausable && {
      pause: () => {
        state.paused = true;
      },
      resume: () => {
        state.paused = false;
      },
    }),
    onMessage: (listener) => {
      onMessage = listener;
    },
    onClose: (listener) => {
      onClose = listener;
    },
  };
  const says = (data: Uint8Array | string): void =>
    onMessage(typeof data === 'string' ? new TextEncoder().encode(data) : data, typeof data !== 'string');
  return { socket, state, says, breaks: () => onClose(1006, '') };
}

/** Joined, with a clock whose only look is taken by hand. */
function joined(pausable = true) {
  const one = end({ pausable });
  const other = end({ pausable });
  let look: (() => void) | undefined;
  const clock = {
    ...systemClock,
    schedule: (_ms: number, run: () => void) => {
      look = run;
      return () => {};
    },
  };
  joinSockets(one.socket, other.socket, { clock });
  return { one, other, look: () => look?.() };
}

test('joinSockets() passes text as text and bytes as bytes, both ways', () => {
  const { one, other } = joined();
  one.says('hello');
  other.says(new Uint8Array([1, 2]));
  assert.deepEqual(other.state.sent, ['hello']);
  assert.deepEqual(one.state.sent, [new Uint8Array([1, 2])]);
});

test('joinSockets() stops reading an end while the other is behind', () => {
  const { one, other, look } = joined();
  one.says(new Uint8Array(MIB));
  assert.equal(one.state.paused, false);
  one.says(new Uint8Array(1));
  assert.equal(one.state.paused, true);
  look();
  assert.equal(one.state.paused, true);
  other.state.buffered = MIB;
  look();
  assert.equal(one.state.paused, false);
});

test('joinSockets() lets an end go that is far behind, where the other cannot be stopped', () => {
  const { one, other } = joined(false);
  for (let i = 0; i < 64; i++) one.says(new Uint8Array(MIB));
  assert.equal(other.state.closed, undefined);
  one.says(new Uint8Array(1));
  assert.deepEqual([other.state.closed, one.state.closed], [1013, 1013]);
});

test('joinSockets() closes one end when the other has gone, with a code that may be sent', () => {
  const { one, other } = joined();
  one.breaks();
  assert.equal(other.state.closed, 1000);
  one.says('late');
  assert.deepEqual(other.state.sent, []);
});
