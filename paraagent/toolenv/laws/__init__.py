"""The eight laws of the grounded world, checked on tools of a catalog."""

from paraagent.toolenv.laws.findings import LAWS as LAWS
from paraagent.toolenv.laws.findings import Findings as Findings
from paraagent.toolenv.laws.findings import Violation as Violation
from paraagent.toolenv.laws.play import check_laws as check_laws
