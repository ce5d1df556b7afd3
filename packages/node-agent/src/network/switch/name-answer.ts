/** Answers a guest's question for a name of the cluster. */
import { type Ipv4Packet, makeFrame, put16, UDP } from '../ipv4-frame.ts';
import type { GuestPort } from './guest-port.ts';
import {
  answerQuery,
  clusterName,
  DNS_PORT,
  type ExternalAnswer,
  externalNameOf,
  type NameLookup,
  questionOf,
  reverseAddress,
} from './name-server.ts';

/** Resolves a name of the world as this host does; never rejects. */
export type ExternalResolver = (name: string) => Promise<ExternalAnswer>;

/** Asks the host's servers, where `host` says so, then others, one after the other. */
export type QuestionAsker = (
  question: Uint8Array,
  at: { readonly host: boolean; readonly servers: readonly string[] },
) => Promise<Uint8Array | undefined>;

/** Questions of all guests that wait for a resolver; what comes beyond is dropped, and asked again. */
const MAX_WAITING = 64;
const SERVER_FAILED = 2;

export interface NameAnswers {
  /** Sends the answer to the guest, where the question is one for us. */
  answer(
    port: GuestPort,
    frame: Uint8Array,
    question: {
      readonly packet: Ipv4Packet;
      readonly asked: { readonly source: number };
      /** Of the servers of the guest's own, those that it may ask. */
      readonly servers: readonly string[];
    },
  ): void;
}

/** Makes what answers by `lookup`; names of the cluster that stand for one of the world are resolved by `resolve`. */
export function createNameAnswers(
  lookup: NameLookup,
  { resolve, ask }: { readonly resolve: ExternalResolver; readonly ask: QuestionAsker },
): NameAnswers {
  let turn = 0;
  let waiting = 0;
  const wait = <T>(work: () => Promise<T>, done: (result: T) => void): void => {
    if (waiting >= MAX_WAITING) return;
    waiting++;
    void work().then((result) => {
      waiting--;
      done(result);
    });
  };
  const isOfCluster = (query: Uint8Array): boolean => {
    const { name = '' } = questionOf(query) ?? {};
    return reverseAddress(name) === undefined ? clusterName(name) !== undefined : lookup(name) !== undefined;
  };
  return {
    answer(port, frame, { packet, asked, servers }) {
      const { source, destination } = packet;
      // A copy: the frame is not ours when the host's resolver has answered.
      const query = frame.slice(packet.payload + 8, packet.end);
      const send = (message: Uint8Array | undefined): void => {
        if (!message) return;
        const payload = new Uint8Array(8 + message.length);
        put16(payload, 0, DNS_PORT);
        put16(payload, 2, asked.source);
        put16(payload, 4, payload.length);
        payload.set(message, 8);
        port.answer(makeFrame({ protocol: UDP, source: destination, destination: source, payload }));
      };
      const sendOwn = (world?: ExternalAnswer): void =>
        send(answerQuery(query, lookup, { turn: turn++, ...(world && { world }) }));
      const { resolvers } = port;
      const name = externalNameOf(query, lookup);
      if (resolvers && !(resolvers.cluster && isOfCluster(query)))
        wait(() => ask(query, { host: resolvers.host, servers }).catch(() => undefined), send);
      else if (name === undefined) sendOwn();
      else wait(() => resolve(name).catch((): ExternalAnswer => ({ addresses: [], code: SERVER_FAILED })), sendOwn);
    },
  };
}
