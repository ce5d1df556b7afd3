/**
 * The priority levels and flow schemas every cluster starts with, as `flow-control-objects.json` has them
 * (pkg/apis/flowcontrol/bootstrap of Kubernetes 1.36). `endpoints/flow-control` gives requests their seats by them.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import objects from './flow-control-objects.json' with { type: 'json' };

export const FLOW_CONTROL_OBJECTS: readonly UnstructuredObject[] = objects;

/** Those that every cluster has and keeps: without them a request might find no level at all. */
const MANDATORY = ['exempt', 'catch-all'];
const mandatory = (kind: string): Readonly<Record<string, JsonObject>> =>
  Object.fromEntries(
    objects
      .filter((object) => object.kind === kind && MANDATORY.includes(object.metadata.name))
      .map(({ metadata, spec }) => [metadata.name, spec]),
  );

/** The specs of the mandatory flow schemas, by name. */
export const MANDATORY_SCHEMAS = mandatory('FlowSchema');
/** The specs of the mandatory priority levels, by name. */
export const MANDATORY_LEVELS = mandatory('PriorityLevelConfiguration');
