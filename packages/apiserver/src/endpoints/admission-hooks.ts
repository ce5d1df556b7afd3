/** Binds the admission chain to one request: its user, its resource, its options, its warnings. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { runMutating, runValidating } from '../admission/chain.ts';
import type { AdmissionAttributes, AdmissionOperation } from '../admission/plugin.ts';
import type { AdmissionHooks, AdmissionSubject } from '../registry/write-contract.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';
import { isTrue } from './request-info.ts';

/** A class, not a literal with a spread and a getter: those make an object that is slow to build and to read. */
class BoundAttributes implements AdmissionAttributes {
  readonly operation: AdmissionOperation;
  readonly requestVerb: string;
  readonly info: ResourceInfo;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: AdmissionAttributes['user'];
  readonly dryRun: boolean;
  readonly object: AdmissionAttributes['object'];
  readonly oldObject: AdmissionAttributes['oldObject'];
  readonly companions: AdmissionAttributes['companions'];
  readonly checks: AdmissionAttributes['checks'];
  readonly warn: (text: string) => void;
  readonly annotate: AdmissionAttributes['annotate'];
  reinvocation: AdmissionAttributes['reinvocation'] = undefined;
  takenBack = false;
  sameGeneration = false;
  readonly #exchange: Exchange;

  constructor(
    exchange: Exchange,
    bound: Bound,
    { operation, subject }: { readonly operation: AdmissionOperation; readonly subject: AdmissionSubject },
  ) {
    this.operation = operation;
    this.requestVerb = exchange.info.verb;
    this.info = bound.info;
    this.subresource = bound.subresource;
    this.namespace = exchange.info.namespace || (subject.oldObject ?? subject.object)?.metadata?.namespace || '';
    this.name = subject.name;
    this.user = exchange.user;
    this.dryRun = bound.dryRun;
    this.object = subject.object;
    this.oldObject = subject.oldObject;
    this.companions = subject.companions;
    this.checks = subject.checks;
    this.warn = exchange.warn;
    this.annotate = exchange.annotate;
    this.#exchange = exchange;
  }

  /** Most requests never need their signal, and making one costs. */
  get signal(): AbortSignal {
    return this.#exchange.signal;
  }

  get deadline(): number | undefined {
    return this.#exchange.deadline;
  }

  get options(): AdmissionAttributes['options'] {
    return operationOptions(this.#exchange, this.operation);
  }
}

const KINDS: Partial<Record<AdmissionOperation, string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
};

/** The request's options as webhooks and policies see them: an object of meta.k8s.io/v1; undefined for a CONNECT. */
function operationOptions(exchange: Exchange, operation: AdmissionOperation): AdmissionAttributes['options'] {
  const kind = KINDS[operation];
  if (kind === undefined) return undefined;
  const head = { kind, apiVersion: 'meta.k8s.io/v1' };
  return operation === 'DELETE' ? { ...deleteOptions(exchange), ...head } : { ...head, ...writeOptions(exchange) };
}

function writeOptions({ query }: Exchange): Record<string, unknown> {
  const dryRun = query.getAll('dryRun');
  const fieldManager = query.get('fieldManager');
  const fieldValidation = query.get('fieldValidation');
  return {
    ...(dryRun.length > 0 && { dryRun }),
    ...(fieldManager && { fieldManager }),
    ...(fieldValidation && { fieldValidation }),
  };
}

/** As sent: the body has been checked by the verb. Other bodies (an Eviction) delete as well. */
function deleteOptions(exchange: Exchange): Record<string, unknown> {
  const { request, query } = exchange;
  if (request.body.length > 0) {
    const value = parseBody(exchange, undefined).value as Record<string, unknown>;
    return (value['kind'] === 'Eviction' ? (value['deleteOptions'] ?? {}) : value) as Record<string, unknown>;
  }
  const dryRun = query.getAll('dryRun');
  const grace = query.get('gracePeriodSeconds');
  const policy = query.get('propagationPolicy');
  const orphan = query.get('orphanDependents');
  return {
    ...(grace && { gracePeriodSeconds: Number(grace) }),
    ...(orphan !== null && { orphanDependents: isTrue(orphan) }),
    ...(policy && { propagationPolicy: policy }),
    ...(dryRun.length > 0 && { dryRun }),
  };
}

interface Bound {
  readonly info: ResourceInfo;
  readonly subresource: string;
  readonly dryRun: boolean;
}

export function admissionHooks(exchange: Exchange, bound: Bound): AdmissionHooks {
  const { admission, admissionMetrics } = exchange.server;
  const { info, subresource } = bound;
  return {
    mayChange: (operation) =>
      admission.some(
        ({ mutate, changesNothing, missingRights, matches }) =>
          ((mutate && !changesNothing) || missingRights) && matches(operation, info, subresource),
      ),
    mutate(operation, subject) {
      const attributes = new BoundAttributes(exchange, bound, { operation, subject });
      const note = (): void => {
        if (attributes.reinvocation?.wanted || attributes.takenBack) subject.rewritten = true;
        if (attributes.sameGeneration) subject.sameGeneration = true;
      };
      const pending = runMutating(admission, attributes, admissionMetrics);
      if (pending) return pending.then(note);
      note();
    },
    missingRights(operation, subject) {
      if (subresource === '') return undefined;
      const plugin = admission.find(
        ({ missingRights, matches }) => missingRights && matches(operation, info, subresource),
      );
      return plugin?.missingRights?.(new BoundAttributes(exchange, bound, { operation, subject }));
    },
    validate: (operation, subject) =>
      runValidating(admission, new BoundAttributes(exchange, bound, { operation, subject }), admissionMetrics),
  };
}
