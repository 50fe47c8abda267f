"""The libraries that programs find, each used once.  SANDBOX_URL: where the server is."""
import asyncio
import os

from vial.nemo import get_sandbox

PROGRAMS = {
    "numpy": "import numpy as np\nprint(np.mean([1, 2, 3, 4, 5]))",
    "pandas": "import pandas as pd\nprint(pd.DataFrame({'a': [1, 2, 3]})['a'].sum())",
    "scipy": "from scipy import integrate\nprint(round(integrate.quad(lambda x: x, 0, 2)[0], 6))",
    "ipython": "import IPython\nprint(IPython.version_info[0] > 0)",
    "plotly": "import plotly.graph_objects as go\nprint(len(go.Figure(go.Bar(y=[1, 2])).data))",
}


async def main():
    sandbox = get_sandbox("local", uri=os.environ.get("SANDBOX_URL"))
    for name, code in PROGRAMS.items():
        result = await sandbox.execute_code(code, timeout=60)
        print(name, result["process_status"], result["stdout"].strip())


asyncio.run(main())
# prints:
# numpy completed 3.0
# pandas completed 6
# scipy completed 2.0
# ipython completed True
# plotly completed 1
