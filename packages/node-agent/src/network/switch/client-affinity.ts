/** To which endpoint each client of a Service with `sessionAffinity: ClientIP` was sent last. */
import type { ServiceTarget } from './switch-state.ts';

/** The one that was sent longest ago goes when there are too many. */
const MAX_CLIENTS = 4096;

/** What is remembered of the Services that are asked for, or of the clients that ask for one: by what tells those apart. */
export interface ClientAffinity {
  /** The endpoint that its next connection goes to as well; undefined where that is not ready, or the time is up. */
  find<T extends ServiceTarget>(
    client: string,
    service: { readonly affinitySeconds?: number; readonly targets: readonly T[] },
  ): T | undefined;
  note(client: string, target: ServiceTarget): void;
}

/** Makes an empty one. `now`: ms of a clock that only goes forward. */
export function createClientAffinity(now: () => number): ClientAffinity {
  const last = new Map<string, { readonly target: ServiceTarget; readonly at: number }>();
  return {
    find(client, { affinitySeconds, targets }) {
      const known = affinitySeconds === undefined ? undefined : last.get(client);
      if (!known || now() - known.at > affinitySeconds! * 1000) return undefined;
      return targets.find(({ address, port }) => address === known.target.address && port === known.target.port);
    },
    note(client, target) {
      last.delete(client);
      last.set(client, { target, at: now() });
      if (last.size > MAX_CLIENTS) last.delete(last.keys().next().value as string);
    },
  };
}
