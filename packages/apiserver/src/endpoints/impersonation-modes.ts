/**
 * The ways in which a request may be made in another's name (apiserver's endpoints/filters/impersonation). A constrained
 * one asks for two rights: `impersonate-on:<mode>:<verb>` on what the request is about, and `impersonate:<mode>` on
 * whom it names. The last, legacy one asks for `impersonate` alone.
 */
import { checkDomainPath, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { ApiError } from '@coracle/apimachinery/meta/status';
import type { AuthorizationAttributes, UserInfo } from '../auth/identity.ts';
import { authorizationAttributes, forbiddenBy } from './authorization.ts';
import type { Exchange } from './exchange.ts';

/** Whom a request names, as its headers say. */
export interface Wanted {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid: string;
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** Whom it is for, and the right that allowed it where that was a constrained one. */
export interface Impersonated {
  readonly user: UserInfo;
  readonly constraint: string;
}

interface Mode {
  /** '' = legacy. */
  readonly name: string;
  readonly serves: (wanted: Wanted, asker: UserInfo) => boolean;
  /** Whom the authorizer is asked about, when that is not the asker as it came. */
  readonly askAs?: (asker: UserInfo) => UserInfo;
  /** The right covers every node: where the asker runs has been looked at. */
  readonly anyName?: boolean;
}

interface Target {
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name: string;
}

const SERVICE_ACCOUNT = 'system:serviceaccount:';
const NODE = 'system:node:';
const NODE_NAME = 'authentication.kubernetes.io/node-name';
const NODE_KEYS = 'authentication.kubernetes.io/associated-node-keys';
const AUTHENTICATION = 'authentication.k8s.io';
/** From so many values on, the right to all of them is asked for first. */
const MANY = 4;

function accountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace = '', name = '', ...rest] = username.slice(SERVICE_ACCOUNT.length).split(':');
  return namespace === '' || name === '' || rest.length > 0 ? undefined : { namespace, name };
}

function nodeOf(username: string): string | undefined {
  const name = username.startsWith(NODE) ? username.slice(NODE.length) : '';
  return checkSubdomain(name).length === 0 ? name : undefined;
}

const onlyName = ({ groups, uid, extra }: Wanted): boolean => groups.length === 0 && uid === '' && extra.size === 0;

function runsOn(asker: UserInfo, node: string | undefined): boolean {
  const nodes = asker.extra?.[NODE_NAME] ?? [];
  return node !== undefined && accountOf(asker.username) !== undefined && nodes.length === 1 && nodes[0] === node;
}

const LEGACY: Mode = { name: '', serves: () => true };

/** In the order in which they are tried. */
const MODES: readonly Mode[] = [
  {
    name: 'associated-node',
    serves: (wanted, asker) => onlyName(wanted) && runsOn(asker, nodeOf(wanted.username)),
    askAs: (asker) => ({ ...asker, extra: { [NODE_KEYS]: Object.keys(asker.extra ?? {}).sort() } }),
    anyName: true,
  },
  { name: 'arbitrary-node', serves: (wanted) => onlyName(wanted) && nodeOf(wanted.username) !== undefined },
  { name: 'serviceaccount', serves: (wanted) => onlyName(wanted) && accountOf(wanted.username) !== undefined },
  { name: 'user-info', serves: ({ username }) => nodeOf(username) === undefined && accountOf(username) === undefined },
  LEGACY,
];

/** The first mode that allows it decides. Rejects with ApiError 403: what the first one that could have said. */
export async function impersonate(exchange: Exchange, wanted: Wanted): Promise<Impersonated> {
  let refusal: ApiError | undefined;
  for (const mode of MODES) {
    if (!mode.serves(wanted, exchange.user)) continue;
    const wrong = await new Check(exchange, mode).run(wanted);
    if (wrong === undefined) return impersonated(wanted, mode);
    refusal ??= wrong;
  }
  throw refusal;
}

function impersonated({ username, groups: asked, uid, extra }: Wanted, mode: Mode): Impersonated {
  const account = accountOf(username);
  const groups =
    account && asked.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]
      : mode !== LEGACY && nodeOf(username) !== undefined
        ? ['system:nodes']
        : [...asked];
  const ensure = (group: string): unknown => groups.includes(group) || groups.push(group);
  if (username === 'system:anonymous') ensure('system:unauthenticated');
  else if (!groups.includes('system:unauthenticated')) ensure('system:authenticated');
  const user = {
    username,
    ...(uid !== '' && { uid }),
    groups,
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  };
  return { user, constraint: mode === LEGACY ? '' : `impersonate:${mode.name}` };
}

/** One mode's questions about one request. Each method returns the refusal, if there is one. */
class Check {
  readonly #exchange: Exchange;
  readonly #mode: Mode;
  readonly #asker: UserInfo;
  readonly #verb: string;

  constructor(exchange: Exchange, mode: Mode) {
    this.#exchange = exchange;
    this.#mode = mode;
    this.#asker = mode.askAs?.(exchange.user) ?? exchange.user;
    this.#verb = mode === LEGACY ? 'impersonate' : `impersonate:${mode.name}`;
  }

  async run({ username, groups, uid, extra }: Wanted): Promise<ApiError | undefined> {
    return (
      (this.#mode === LEGACY ? undefined : await this.#request()) ??
      (await this.#may(this.#named(username))) ??
      (uid === '' ? undefined : await this.#may({ resource: 'uids', name: uid })) ??
      (await this.#groups(groups)) ??
      (await this.#extras(extra))
    );
  }

  #request(): Promise<ApiError | undefined> {
    const { info, request } = this.#exchange;
    const verb = `impersonate-on:${this.#mode.name}:${info.verb}`;
    return this.#ask({ ...authorizationAttributes(info, request.query), verb });
  }

  #named(username: string): Target {
    const account = accountOf(username);
    if (account) return { group: this.#group, resource: 'serviceaccounts', ...account };
    const node = this.#mode === LEGACY ? undefined : nodeOf(username);
    if (node === undefined) return { group: this.#group, resource: 'users', name: username };
    return { group: this.#group, resource: 'nodes', name: this.#mode.anyName ? '*' : node };
  }

  async #groups(groups: readonly string[]): Promise<ApiError | undefined> {
    const one = (name: string): Target => ({ group: this.#group, resource: 'groups', name });
    if (this.#mode !== LEGACY) {
      if (groups.includes('')) return this.#refuse(one(''), 'impersonating the empty string group is not allowed');
      if (groups.includes('system:masters')) {
        return this.#refuse(one('system:masters'), 'impersonating the system:masters group is not allowed');
      }
      if (groups.length >= MANY && (await this.#may(one('*'))) === undefined) return undefined;
    }
    return this.#each(groups.map(one));
  }

  async #extras(extra: Wanted['extra']): Promise<ApiError | undefined> {
    const targets = [...extra].flatMap(([subresource, values]) =>
      values.map((name): Target => ({ resource: 'userextras', subresource, name })),
    );
    if (this.#mode !== LEGACY) {
      const wrong = extraProblem(extra);
      if (wrong !== undefined) return this.#refuse({ resource: 'userextras', name: '' }, wrong);
      const all = { resource: 'userextras', subresource: '*', name: '*' };
      if (targets.length >= MANY && (await this.#may(all)) === undefined) return undefined;
    }
    return this.#each(targets);
  }

  async #each(targets: readonly Target[]): Promise<ApiError | undefined> {
    for (const target of targets) {
      const wrong = await this.#may(target);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  get #group(): string {
    return this.#mode === LEGACY ? '' : AUTHENTICATION;
  }

  #may(target: Target): Promise<ApiError | undefined> {
    return this.#ask(this.#attributes(target));
  }

  #attributes(target: Target): AuthorizationAttributes {
    const rest = { group: AUTHENTICATION, version: 'v1', subresource: '', namespace: '', ...target };
    return { type: 'resource', verb: this.#verb, ...rest };
  }

  async #ask(attributes: AuthorizationAttributes): Promise<ApiError | undefined> {
    const { allowed, reason } = await this.#exchange.server.authorize(this.#asker, attributes);
    return allowed ? undefined : this.#reported(attributes, reason);
  }

  #refuse(target: Target, reason: string): ApiError {
    return this.#reported(this.#attributes(target), reason);
  }

  #reported(attributes: AuthorizationAttributes, reason: string): ApiError {
    const info = { ...this.#exchange.info, ...attributes, isResource: attributes.type === 'resource' };
    return forbiddenBy(this.#asker, info, reason);
  }
}

/** What a constrained mode does not take, though the legacy one does. */
function extraProblem(extra: Wanted['extra']): string | undefined {
  for (const [key, values] of extra) {
    if (key === '') return 'impersonating the empty string key in extra is not allowed';
    const [wrong] = checkDomainPath(key);
    if (wrong !== undefined) {
      return `impersonating an invalid key in extra is not allowed: extra.key: Invalid value: ${JSON.stringify(key)}: ${wrong}`;
    }
    if (values.includes('')) return 'impersonating the empty string value in extra is not allowed';
  }
  return undefined;
}
