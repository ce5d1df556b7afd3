import type { IncomingBody } from './receive-body.ts';
import { type ApiRequest, type BodyOutcome, NO_BYTES, type Peer } from './seam.ts';

/** The fields of a request as a protocol front (HTTP/1.1 or HTTP/2) read them. */
export interface WireRequestFields {
  readonly method: string;
  /** Path with query, as on the request line. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly rawHeaders: readonly string[];
  /** Absent when there is none. */
  readonly body?: IncomingBody | undefined;
  readonly identify: (owner: string) => void;
  readonly peer: Peer;
  readonly upgradable?: boolean;
  readonly upgradeTo?: string | undefined;
}

/** One for all: a reason of its own for every request that ends would be an error with a stack each. */
const GONE = new DOMException('the far end went away', 'AbortError');

/** An ApiRequest whose abort signal is made only when somebody asks for it: most requests never do. */
export class WireRequest implements ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly rawHeaders: readonly string[];
  body: Uint8Array = NO_BYTES;
  /** Gone once it has been called. */
  receive: ((owner: string) => Promise<BodyOutcome>) | undefined;
  readonly identify: (owner: string) => void;
  readonly peer: Peer;
  readonly upgradable: boolean;
  readonly upgradeTo: string | undefined;
  #controller: AbortController | undefined;
  #gone = false;

  constructor(fields: WireRequestFields) {
    const question = fields.target.indexOf('?');
    this.method = fields.method;
    this.path = question < 0 ? fields.target : fields.target.slice(0, question);
    this.query = question < 0 ? '' : fields.target.slice(question + 1);
    this.headers = fields.headers;
    this.rawHeaders = fields.rawHeaders;
    const incoming = fields.body;
    this.receive =
      incoming &&
      ((owner) => {
        this.receive = undefined;
        return incoming.receive(owner, (body) => {
          this.body = body;
        });
      });
    this.identify = fields.identify;
    this.peer = fields.peer;
    this.upgradable = fields.upgradable ?? false;
    this.upgradeTo = fields.upgradeTo;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#gone) this.#controller.abort(GONE);
    return this.#controller.signal;
  }

  /** The far end went away. */
  abort(): void {
    this.#gone = true;
    this.#controller?.abort(GONE);
  }
}
