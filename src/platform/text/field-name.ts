/** The path to a field through objects and lists, as a programmer writes it: `additionalLimits[1].period`. */
export function fieldName(steps: readonly string[]): string {
  return steps
    .map((step, index) => (/^\d+$/.test(step) && index > 0 ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
}
