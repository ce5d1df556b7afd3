/** The lines of this node's switch to cards on segments: QEMU waits for them at sockets in the directories of its guests. */
import { createConnection, type Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { boundedLine } from '../bounded-line.ts';
import type { Segments } from './segments.ts';
import type { NetworkCard } from './switch-state.ts';

const RETRY_MS = 250;

/** `set` says which cards there are: they are connected, and again whenever QEMU is away, until they are named no more. */
export function createCardLines({
  segments,
  clock,
  signal,
  onSocket,
}: {
  readonly segments: Segments;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onSocket: (socket: Socket) => void;
}): { set(cards: readonly NetworkCard[]): void } {
  const held = new Map<string, { readonly card: NetworkCard; readonly stop: () => void }>();

  /** Resolves when the line has ended. */
  const carry = (card: NetworkCard, life: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const socket = createConnection({ path: card.socket });
      const stop = (): void => void socket.destroy();
      life.addEventListener('abort', stop, { once: true });
      socket.on('error', () => {});
      socket.on('connect', () => {
        // Only now: who waits for a QEMU that has gone keeps no switch alive.
        onSocket(socket);
        const end = segments.connect(card, boundedLine(socket));
        socket.on('close', () => end.close());
        socket.on('data', (bytes: Buffer) => {
          try {
            end.take(bytes);
          } catch (error) {
            socket.destroy(error as Error);
          }
        });
      });
      socket.on('close', () => {
        life.removeEventListener('abort', stop);
        resolve();
      });
    });

  const keep = async (card: NetworkCard, life: AbortSignal): Promise<void> => {
    while (!life.aborted) {
      await carry(card, life);
      await clock.sleep(RETRY_MS, life).catch(() => {});
    }
  };

  return {
    set(cards) {
      const wanted = new Map(cards.map((card) => [card.socket, card]));
      for (const [socket, { card, stop }] of held)
        if (!isDeepStrictEqual(wanted.get(socket), card)) {
          stop();
          held.delete(socket);
        }
      for (const card of cards) {
        if (held.has(card.socket)) continue;
        const life = createLinkedController(signal);
        const stop = (): void => {
          life.abort(new Error('the card is gone'));
          life.release();
        };
        held.set(card.socket, { card, stop });
        void keep(card, life.signal);
      }
    },
  };
}
