/** Answers a guest's question for a name of the cluster. */
import { type Ipv4Packet, makeFrame, put16, UDP } from '../ipv4-frame.ts';
import type { GuestPort } from './guest-port.ts';
import { answerQuery, DNS_PORT, type NameLookup, type WorldAnswer, worldNameOf } from './name-server.ts';

/** Resolves a name of the world as this host does; never rejects. */
export type WorldResolver = (name: string) => Promise<WorldAnswer>;

/** Questions of all guests that wait for the host's resolver; what comes beyond is dropped, and asked again. */
const MAX_WAITING = 64;
const SERVER_FAILED = 2;

export interface NameAnswers {
  /** Sends the answer to the guest, where the question is one for us. */
  answer(
    port: GuestPort,
    frame: Uint8Array,
    question: { readonly packet: Ipv4Packet; readonly asked: { readonly source: number } },
  ): void;
}

/** Makes what answers by `lookup`; names of the cluster that stand for one of the world are resolved by `resolve`. */
export function createNameAnswers(lookup: NameLookup, resolve: WorldResolver): NameAnswers {
  let turn = 0;
  let waiting = 0;
  return {
    answer(port, frame, { packet, asked }) {
      const { source, destination } = packet;
      // A copy: the frame is not ours when the host's resolver has answered.
      const query = frame.slice(packet.payload + 8, packet.end);
      const send = (world?: WorldAnswer): void => {
        const message = answerQuery(query, lookup, { turn: turn++, ...(world && { world }) });
        if (!message) return;
        const payload = new Uint8Array(8 + message.length);
        put16(payload, 0, DNS_PORT);
        put16(payload, 2, asked.source);
        put16(payload, 4, payload.length);
        payload.set(message, 8);
        port.answer(makeFrame({ protocol: UDP, source: destination, destination: source, payload }));
      };
      const name = worldNameOf(query, lookup);
      if (name === undefined) send();
      else if (waiting < MAX_WAITING) {
        waiting++;
        void resolve(name)
          .catch((): WorldAnswer => ({ addresses: [], code: SERVER_FAILED }))
          .then((world) => {
            waiting--;
            send(world);
          });
      }
    },
  };
}
