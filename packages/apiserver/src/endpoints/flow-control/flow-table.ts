/** The stored levels and schemas, ready to be matched: what it takes to tell which flow a request belongs to. */
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { UserInfo } from '../../auth/identity.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { RequestInfo } from '../request-info.ts';
import type { Flow } from '../request-seats.ts';
import { compileFlowSchemas, covers, type FlowSchema, rulesFor } from './flow-schemas.ts';
import { PriorityLevel, type Seats } from './priority-level.ts';

export const SCHEMAS = 'flowcontrol.apiserver.k8s.io/flowschemas';
export const LEVELS = 'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations';

/** What a request was matched to. */
export interface MatchedFlow extends Flow {
  readonly schema: FlowSchema;
  readonly level: PriorityLevel;
}

export class FlowTable {
  readonly levels = new Map<string, PriorityLevel>();
  readonly #store: Pick<ObjectStore, 'list'>;
  readonly #seats: Seats;
  readonly #clock: Clock;
  #flows: MatchedFlow[] = [];
  /** By user object: the flows whose subjects include him. Dropped when anything changes. */
  #byUser = new WeakMap<UserInfo, { readonly flow: Flow; readonly rules: ReturnType<typeof rulesFor> }[]>();

  constructor(store: Pick<ObjectStore, 'list'>, { seats, clock }: { readonly seats: Seats; readonly clock: Clock }) {
    this.#store = store;
    this.#seats = seats;
    this.#clock = clock;
  }

  /** Reads the stored objects anew. Levels that are still there keep who runs and waits in them. */
  compile(): void {
    this.#configureLevels();
    this.#flows = compileFlowSchemas(this.#store.list(SCHEMAS).items.map(({ object }) => object)).flatMap((schema) => {
      const level = this.levels.get(schema.level);
      if (!level) return [];
      const headers = {
        'x-kubernetes-pf-flowschema-uid': schema.uid,
        'x-kubernetes-pf-prioritylevel-uid': level.uid,
      };
      return [{ schema, level, headers }];
    });
    this.#byUser = new WeakMap();
  }

  /** The first flow that covers the request. */
  match(user: UserInfo, info: RequestInfo): Flow | undefined {
    for (const { flow, rules } of this.#flowsOf(user)) if (covers(rules, info)) return flow;
    return undefined;
  }

  #configureLevels(): void {
    const { levels } = this;
    const stored = this.#store.list(LEVELS).items;
    const names = new Set(stored.map(({ name }) => name));
    for (const name of levels.keys()) if (!names.has(name)) levels.delete(name);
    for (const { name, object } of stored) {
      const level = levels.get(name) ?? new PriorityLevel(name, { seats: this.#seats, clock: this.#clock });
      level.configure(object);
      levels.set(name, level);
    }
    const { total } = this.#seats;
    const shares = [...levels.values()].reduce((sum, level) => sum + level.shares, 0);
    for (const level of levels.values()) level.limit = shares === 0 ? 0 : Math.ceil((total * level.shares) / shares);
  }

  #flowsOf(user: UserInfo) {
    return getOrInsert(this.#byUser, user, () =>
      this.#flows.flatMap((flow) => {
        const rules = rulesFor(flow.schema, user);
        return rules.length > 0 ? [{ flow, rules }] : [];
      }),
    );
  }
}
