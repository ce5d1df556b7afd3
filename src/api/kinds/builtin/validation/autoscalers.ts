/** Validation of HorizontalPodAutoscalers, in the form of v2 (autoscaling/validation). */

import { checkLabelName, checkPathSegment } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { readQuantity } from '../../../quantity/quantity.ts';
import { isObject, type JsonObject, numberAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { autoscalerView } from '../views/autoscaler-view.ts';
import {
  faults,
  forbidden,
  type GroupValidators,
  invalid,
  type Judging,
  judgeEach,
  newJudging,
  nonNegative,
  required,
  requiredText,
  unsupported,
} from './field-errors.ts';
import { checkContainerResourceName } from './resource-names.ts';

const LONGEST_PERIOD = 1800;
const LONGEST_WINDOW = 3600;
/** Type of a metric -> its member, in the order in which upstream looks for them. */
const SOURCES: Readonly<Record<string, string>> = {
  Object: 'object',
  External: 'external',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
};
const TYPES = Object.keys(SOURCES);
const TARGETS = ['Utilization', 'Value', 'AverageValue'];

function* validateAutoscaler(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const isV1 = textAt(object, 'apiVersion') === 'autoscaling/v1';
  const spec = valueAt(isV1 ? autoscalerView.toStored(object) : object, 'spec');
  const least = valueAt(spec, 'minReplicas');
  const most = numberAt(spec, 'maxReplicas');
  const lowest = valueAt(old, 'spec', 'minReplicas') === 0 ? 0 : 1;
  if (typeof least === 'number' && least < lowest) {
    errors.push(invalid('spec.minReplicas', least, `must be greater than or equal to ${lowest}`));
  }
  if (most < 1) errors.push(invalid('spec.maxReplicas', most, 'must be greater than 0'));
  if (typeof least === 'number' && most < least) {
    errors.push(invalid('spec.maxReplicas', most, 'must be greater than or equal to `minReplicas`'));
  }
  errors.push(...referenceErrors(valueAt(spec, 'scaleTargetRef'), 'spec.scaleTargetRef'));
  const metrics = objectsAt(spec, 'metrics');
  yield* judgeEach(judging, metrics, (metric, i) => metricErrors(metric, `spec.metrics[${i}]`), METRIC);
  const mayBeNone = metrics.some((metric) => ['Object', 'External'].includes(textAt(metric, 'type')));
  if (least === 0 && !mayBeNone) {
    const detail = 'must specify at least one Object or External metric to support scaling to zero replicas';
    errors.push(forbidden('spec.metrics', detail));
  }
  for (const way of ['scaleUp', 'scaleDown']) {
    const rules = valueAt(spec, 'behavior', way);
    if (isObject(rules)) yield* judgeRules(judging, rules, `spec.behavior.${way}`);
  }
  if (old === undefined) return errors;
  for (const count of ['currentReplicas', 'desiredReplicas']) errors.push(...nonNegative(object, `status.${count}`));
  return errors;
}

/** What a metric counts as. */
const METRIC = 5;

function referenceErrors(reference: unknown, at: string): FieldError[] {
  return ['kind', 'name'].flatMap((field) =>
    requiredText(`${at}.${field}`, textAt(reference, field), checkPathSegment),
  );
}

function metricErrors(metric: JsonObject, at: string): FieldError[] {
  const type = textAt(metric, 'type');
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${at}.type`, 'must specify a metric source type'));
  const wanted = Object.hasOwn(SOURCES, type) ? SOURCES[type] : undefined;
  if (wanted === undefined) errors.push(unsupported(`${at}.type`, type, TYPES));
  const given = Object.values(SOURCES).filter((member) => isObject(valueAt(metric, member)));
  const [first] = given;
  if (first !== undefined) errors.push(...sourceErrors(first, valueAt(metric, first), `${at}.${first}`));
  if (wanted !== undefined && !given.includes(wanted)) {
    errors.push(required(`${at}.${wanted}`, 'must populate information for the given metric source'));
  }
  if (given.length === 1) return errors;
  for (const member of given.filter((one) => one !== wanted)) {
    errors.push(forbidden(`${at}.${member}`, 'must populate the given metric source only'));
  }
  return errors;
}

function sourceErrors(kind: string, source: unknown, at: string): FieldError[] {
  const target = valueAt(source, 'target');
  const isResource = kind === 'resource' || kind === 'containerResource';
  const errors: FieldError[] = [];
  if (kind === 'object') errors.push(...referenceErrors(valueAt(source, 'describedObject'), `${at}.describedObject`));
  if (isResource) errors.push(...resourceErrors(kind, source, at));
  else errors.push(...identifierErrors(valueAt(source, 'metric'), `${at}.metric`));
  errors.push(...targetErrors(target, `${at}.target`));
  const has = (field: string): boolean => valueAt(target, field) != null;
  const [average, value, utilization] = ['averageValue', 'value', 'averageUtilization'].map(has);
  const [averageAt, valuePath] = [`${at}.target.averageValue`, `${at}.target.value`];
  if (isResource) {
    if (!average && !utilization) {
      const detail = 'must set either a target raw value or a target utilization';
      errors.push(required(`${at}.target.averageUtilization`, detail));
    }
    if (average && utilization) {
      errors.push(forbidden(averageAt, 'may not set both a target raw value and a target utilization'));
    }
  } else if (kind === 'pods') {
    if (!average) errors.push(required(averageAt, 'must specify a positive target averageValue'));
  } else if (kind === 'object') {
    if (!average && !value) errors.push(required(averageAt, 'must set either a target value or averageValue'));
  } else if (!average && !value) {
    errors.push(required(averageAt, 'must set either a target value for metric or a per-pod target'));
  } else if (average && value) {
    errors.push(forbidden(valuePath, 'may not set both a target value for metric and a per-pod target'));
  }
  return errors;
}

function resourceErrors(kind: string, source: unknown, at: string): FieldError[] {
  const [name, container] = [textAt(source, 'name'), textAt(source, 'container')];
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${at}.name`, 'must specify a resource name'));
  if (kind !== 'containerResource') return errors;
  if (name !== '') errors.push(...checkContainerResourceName(name, `${at}.name`));
  if (container === '') errors.push(required(`${at}.container`, 'must specify a container'));
  else errors.push(...faults(`${at}.container`, container, checkLabelName(container)));
  return errors;
}

function identifierErrors(identifier: unknown, at: string): FieldError[] {
  const name = textAt(identifier, 'name');
  if (name === '') return [required(`${at}.name`, 'must specify a metric name')];
  return faults(`${at}.name`, name, checkPathSegment(name));
}

function targetErrors(target: unknown, at: string): FieldError[] {
  const type = textAt(target, 'type');
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${at}.type`, 'must specify a metric target type'));
  if (!TARGETS.includes(type)) {
    errors.push(invalid(`${at}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const field of ['value', 'averageValue']) {
    const value = valueAt(target, field);
    const amount = readQuantity(value);
    if (amount !== undefined && amount.nano <= 0n) errors.push(invalid(`${at}.${field}`, value, 'must be positive'));
  }
  const utilization = valueAt(target, 'averageUtilization');
  if (typeof utilization === 'number' && utilization < 1) {
    errors.push(invalid(`${at}.averageUtilization`, utilization, 'must be greater than 0'));
  }
  return errors;
}

function* judgeRules(judging: Judging, rules: JsonObject, at: string): Steps<void> {
  const { errors } = judging;
  const window = valueAt(rules, 'stabilizationWindowSeconds');
  const refuse = (detail: string): unknown => errors.push(invalid(`${at}.stabilizationWindowSeconds`, window, detail));
  if (typeof window === 'number') {
    if (window < 0) refuse('must be greater than or equal to zero');
    if (window > LONGEST_WINDOW) refuse(`must be less than or equal to ${LONGEST_WINDOW}`);
  }
  const select = valueAt(rules, 'selectPolicy');
  const choices = ['Disabled', 'Max', 'Min'];
  if (typeof select === 'string' && !choices.includes(select)) {
    errors.push(unsupported(`${at}.selectPolicy`, select, choices));
  }
  const policies = objectsAt(rules, 'policies');
  if (policies.length === 0) errors.push(required(`${at}.policies`, 'must specify at least one Policy'));
  yield* judgeEach(judging, policies, (policy, i) => policyErrors(policy, `${at}.policies[${i}]`));
  const tolerance = readQuantity(valueAt(rules, 'tolerance'));
  if (tolerance !== undefined && tolerance.nano < 0n) {
    const value = valueAt(rules, 'tolerance');
    errors.push(invalid(`${at}.tolerance`, value, 'must be greater than or equal to 0'));
  }
}

function policyErrors(policy: JsonObject, at: string): FieldError[] {
  const [type, period] = [textAt(policy, 'type'), numberAt(policy, 'periodSeconds')];
  const errors = type === 'Pods' || type === 'Percent' ? [] : [unsupported(`${at}.type`, type, ['Percent', 'Pods'])];
  const value = numberAt(policy, 'value');
  if (value <= 0) errors.push(invalid(`${at}.value`, value, 'must be greater than zero'));
  if (period <= 0) errors.push(invalid(`${at}.periodSeconds`, period, 'must be greater than zero'));
  if (period > LONGEST_PERIOD) {
    errors.push(invalid(`${at}.periodSeconds`, period, `must be less than or equal to ${LONGEST_PERIOD}`));
  }
  return errors;
}

export const AUTOSCALING_VALIDATORS: GroupValidators = { horizontalpodautoscalers: validateAutoscaler };
