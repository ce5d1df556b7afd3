/** Binds the admission chain to one request: its user, its resource, its warnings. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { runMutating, runValidating } from '../admission/chain.ts';
import type { AdmissionAttributes, AdmissionOperation } from '../admission/plugin.ts';
import type { AdmissionHooks, AdmissionSubject } from '../registry/write-contract.ts';
import type { Exchange } from './exchange.ts';
import { operationOptions } from './operation-options.ts';

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
    bound: { readonly info: ResourceInfo; readonly subresource: string; readonly dryRun: boolean },
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

export function admissionHooks(
  exchange: Exchange,
  bound: { readonly info: ResourceInfo; readonly subresource: string; readonly dryRun: boolean },
): AdmissionHooks {
  const { admission, admissionMetrics } = exchange.server;
  return {
    mayChange(operation) {
      const { info, subresource } = bound;
      return admission.some(
        ({ mutate, changesNothing, missingRights, matches }) =>
          ((mutate && !changesNothing) || missingRights) && matches(operation, info, subresource),
      );
    },
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
      const { info, subresource } = bound;
      if (subresource === '') return undefined;
      const plugin = admission.find(
        ({ missingRights, matches }) => missingRights && matches(operation, info, subresource),
      );
      return plugin?.missingRights?.(new BoundAttributes(exchange, bound, { operation, subject }));
    },
    validate(operation, subject) {
      const attributes = new BoundAttributes(exchange, bound, { operation, subject });
      return runValidating(admission, attributes, admissionMetrics);
    },
  };
}
