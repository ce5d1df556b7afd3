/** The CEL of device selectors (resource.k8s.io; dynamic-resource-allocation/cel): what an expression can name. */
import {
  ANY,
  BOOL,
  type CelProgram,
  type CelType,
  compileCel,
  mapOf,
  objectOf,
  opaqueType,
  STRING,
} from '../../cel/cel.ts';

const sized = (type: CelType, maxElements: number): CelType => ({ ...type, maxElements });

/** Attributes and capacities of a device. */
const MAX_ENTRIES = 32;
const ID = sized(STRING, 32);
const DOMAIN = sized(STRING, 63);
const byDomain = (value: CelType): CelType => sized(mapOf(DOMAIN, sized(mapOf(ID, value), MAX_ENTRIES)), MAX_ENTRIES);

const DEVICE = objectOf('kubernetes.DRADevice', {
  driver: sized(STRING, 63),
  attributes: byDomain(sized(ANY, 64)),
  capacity: byDomain(opaqueType('kubernetes.Quantity')),
  allowMultipleAllocations: BOOL,
});

/** Compiles a selector; whether its result can decide anything is for the caller. Throws CelCompileError. */
export const compileDeviceSelector = (expression: string): CelProgram =>
  compileCel(expression, { variables: { device: DEVICE }, libraries: ['bindings'] });
